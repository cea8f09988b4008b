package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mneme/internal/embed"
	"mneme/internal/node"
)

const redacted = "[redacted]"

// configDoc is what `memnode config --json` prints.
type configDoc struct {
	File struct {
		Path  string `json:"path"`
		Found bool   `json:"found"`
	} `json:"file"`
	Settings []configRow `json:"settings"`
}

// configRow is one effective setting. Secrets are redacted.
type configRow struct {
	Name     string `json:"name"`
	Value    any    `json:"value"`
	Source   layer  `json:"source"`
	Detail   string `json:"detail,omitempty"`   // the flag, the variable, or file:line
	Variable string `json:"variable,omitempty"` // that would set it
}

func configCmd(sys system, opts []option, flags *pflag.FlagSet) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the effective settings and where each came from",
		Long: `config shows what memnode would start with, given the same flags, environment
and file, and where each setting came from. It starts nothing and hides secrets.`,
		Example: "  memnode config\n  memnode config --json --data-dir ./mneme",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := load(sys, opts, flags)
			if err != nil {
				return err
			}
			if err := printConfig(sys, s.doc(sys), asJSON); err != nil {
				return fmt.Errorf("write answer: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.AddCommand(validateCmd(sys, opts, flags))
	return cmd
}

func validateCmd(sys system, opts []option, flags *pflag.FlagSet) *cobra.Command {
	return &cobra.Command{
		Use:   "validate",
		Short: "Check the settings as a start would, without starting",
		Long: `validate checks what memnode would start with, given the same flags, environment and
file: names and values, what does not go together, what is not safe, and the
certificates and keys that are named. It starts and changes nothing. The exit code is 0,
or 2 as that of the start.`,
		Example: "  memnode config validate\n  memnode config validate --config /etc/mneme/next.yaml",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := load(sys, opts, flags)
			if err != nil {
				return err
			}
			if err := s.validate(sys); err != nil {
				return asFailure(err)
			}
			from := "defaults, environment and flags"
			if s.found {
				from = s.file + ", environment and flags"
			}
			_, err = fmt.Fprintf(sys.out, "the settings are good (%s)\n", from)
			return err
		},
	}
}

// validate says what a start would refuse of the settings themselves.
func (s *settings) validate(sys system) error {
	source, err := node.MasterKeySource(s.String("master-key"), sys.getenv)
	if err != nil {
		return err
	}
	if err := s.checkTraces(sys); err != nil {
		return err
	}
	cfg := s.nodeConfig(sys)
	cfg.MasterKey, cfg.Logger = source, nil
	return cfg.CheckFiles()
}

// doc lists the settings, with what the model provider's own variables add.
func (s *settings) doc(sys system) configDoc {
	var d configDoc
	d.File.Path, d.File.Found = s.file, s.found
	e := s.nodeConfig(sys).Embedder
	keyName, urlName := providerVariables(e.Provider)
	for _, o := range s.opts {
		from := s.origins[o.name]
		row := configRow{Name: o.name, Value: s.Get(o.name), Source: from.layer, Detail: from.detail, Variable: o.variable()}
		if o.name == "config" {
			row.Value = s.file
		}
		if o.name == "embedder-url" && row.Value == "" && e.BaseURL != "" && urlName != "" {
			row.Value, row.Source, row.Detail = e.BaseURL, fromEnv, urlName
		}
		row.Value = hide(o, row.Value)
		d.Settings = append(d.Settings, row)
		if o.name == "embedder-url" && keyName != "" {
			key := configRow{Name: "embedder-api-key", Value: e.APIKey.String(), Source: fromDefault, Variable: keyName}
			if !e.APIKey.IsZero() {
				key.Source, key.Detail = fromEnv, keyName
			}
			d.Settings = append(d.Settings, key)
		}
	}
	return d
}

// providerVariables are the variables that a provider's key and address are
// read from; embed.Config.WithEnvironment reads them.
func providerVariables(provider string) (key, url string) {
	switch provider {
	case embed.ProviderOpenAI:
		return "OPENAI_API_KEY", "OPENAI_BASE_URL"
	case embed.ProviderGemini:
		return "GEMINI_API_KEY", ""
	case embed.ProviderOllama:
		return "", "OLLAMA_HOST"
	}
	return "", ""
}

// hide redacts a secret, and the credentials in any URL.
func hide(o option, v any) any {
	switch v := v.(type) {
	case string:
		if o.secret && v != "" {
			return redacted
		}
		if program, arguments, ok := strings.Cut(v, " "); ok && o.name == "master-key" && arguments != "" {
			return program + " " + redacted // of a command: they may say what nobody else may know
		}
		return redactURL(v)
	case []string:
		out := make([]string, len(v))
		for i := range v {
			out[i] = redactURL(v[i])
		}
		return out
	}
	return v
}

func printConfig(sys system, d configDoc, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(sys.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(d)
	}
	w := tabwriter.NewWriter(sys.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "SETTING\tVALUE\tFROM") // w keeps the first error for Flush
	for _, r := range d.Settings {
		value := fmt.Sprint(r.Value)
		if many, ok := r.Value.([]string); ok {
			value = strings.Join(many, ",")
		}
		if value == "" {
			value = "-"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", r.Name, oneLine(value), origin{r.Source, r.Detail})
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if d.File.Found {
		return nil
	}
	_, err := fmt.Fprintf(sys.out, "(there is no %s)\n", d.File.Path)
	return err
}
