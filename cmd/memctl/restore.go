package main

import (
	"path/filepath"

	"github.com/spf13/cobra"
)

// masterKeyHelp says how a verb that opens a data directory gets the master key.
const masterKeyHelp = `MNEME_MASTER_KEY says where the master key of a data directory is, as --master-key
does for memnode: file (its keys/ folder, the default), file:/PATH, env:NAME or command:PROGRAM.`

func restoreCmd(a *app) *cobra.Command {
	var dir, logPath, keysPath string
	const long = `Make a data directory from the two files of a backup. No node may be running there.
` + masterKeyHelp
	cmd := &cobra.Command{
		Use:     "restore --data-dir DIR --log FILE --keys FILE",
		Short:   "Make a data directory from a backup",
		Long:    long,
		Example: "  memctl restore --data-dir ~/.mneme-restored --log mneme.log.bak --keys mneme.keys.bak",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" || logPath == "" || keysPath == "" {
				return usage(cmd, "restore needs --data-dir, --log and --keys")
			}
			off, err := a.offline()
			if err != nil {
				return err
			}
			bar := a.progress("restore")
			report, err := off.Restore(cmd.Context(), dir, logPath, keysPath, bar.report)
			bar.finish()
			if err != nil {
				return err
			}
			if source := a.sys.getenv("MNEME_MASTER_KEY"); source == "" || source == "file" {
				a.note("the master key is in %s, in clear; MNEME_MASTER_KEY=env:NAME or command:PROGRAM keeps it elsewhere", filepath.Join(dir, "keys", "master.key"))
			}
			return printRebuild(a, "restored", "memnode --data-dir "+dir, report)
		},
	}
	cmd.Flags().StringVar(&logPath, "log", "", "the backup of the log")
	cmd.Flags().StringVar(&keysPath, "keys", "", "the backup of the keys")
	cmd.Flags().StringVar(&dir, "data-dir", "", "the data directory to make")
	_ = cmd.MarkFlagDirname("data-dir")
	return cmd
}
