package verbs

import (
	"github.com/spf13/cobra"

	"mneme/cmd/memctl/offline"
)

// placeHelp says what a place of backups is, for the verbs that take one.
const placeHelp = `A PLACE holds backups: a directory, or a bucket as s3://BUCKET/PREFIX. The keys
lie in a PLACE of their own: whoever has both has every memory. Buckets are reached as
AWS_ENDPOINT_URL, AWS_REGION and AWS_CA_BUNDLE say, with the credentials of
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or of AWS_SHARED_CREDENTIALS_FILE, from
which s3://PROFILE@BUCKET/PREFIX takes a profile.
`

// placeFlags name the places of a verb.
type placeFlags struct{ offline.Places }

// from adds the flags of a verb that reads backups.
func (p *placeFlags) from(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.Log, "from", "", "the `place` of the backups")
	cmd.Flags().StringVar(&p.Keys, "keys-from", "", "the `place` of their keys")
}

// passOver adds the flag of a verb that needs to know what was destroyed.
func (p *placeFlags) passOver(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.WithoutUnreadable, "without-unreadable", false, "go on without manifests and lists that cannot be read: what they alone know as forgotten comes back")
}
