package verbs

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"mneme/internal/peer/devca"
	"mneme/memory"
)

// kubeSecret is a Secret of Kubernetes.
type kubeSecret struct {
	APIVersion string            `json:"apiVersion" yaml:"apiVersion"`
	Kind       string            `json:"kind" yaml:"kind"`
	Metadata   kubeMetadata      `json:"metadata" yaml:"metadata"`
	Type       string            `json:"type" yaml:"type"`
	Immutable  bool              `json:"immutable,omitempty" yaml:"immutable,omitempty"`
	Data       map[string]string `json:"data" yaml:"data"` // in base64: server-side apply does not work well with the other field
}

type kubeMetadata struct {
	Name      string            `json:"name" yaml:"name"`
	Namespace string            `json:"namespace" yaml:"namespace"`
	Labels    map[string]string `json:"labels" yaml:"labels"`
}

// kubeList is what --json prints; kubectl takes it as it takes the documents in YAML.
type kubeList struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Items      []kubeSecret `json:"items"`
}

// secretsOptions are the flags of `cluster secrets`.
type secretsOptions struct {
	out, namespace, name, domain string
	hosts                        []string
	nodes, days                  int
	keysOnly, renew              bool

	kept *secretsFolder // nil before the first call
}

func clusterSecretsCmd(a *app) *cobra.Command {
	var opt secretsOptions
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "Print the Secrets that Mneme needs in Kubernetes",
		Long: `Print the three Secrets that the manifests in deploy/k8s mount: certificates by which
the pods know each other (NAME-peers), the certificate that clients are shown with its
authority (NAME-tls), and the master key with the operator token (NAME-keys).

What they are made of stays in --out: the authorities, the master key and the token, and
in secrets.json which cluster they are for. Keep the folder where you keep secrets:
without the master key nothing that the volumes hold can be read.

With --renew a later call prints NAME-peers and NAME-tls with new certificates of the same
authorities, which running pods take. It makes no authority and no key, and refuses where
the folder is not the one of the first call. Renew before the certificates end, and add
pods with a larger --nodes. The folder remembers --name, --kube-namespace,
--cluster-domain, --nodes, --days and each --host; what a later call gives is remembered
too. A folder of an earlier version remembers nothing yet: give it the flags once more.

NAME-keys is immutable: the API server refuses another master key or token under that
name. To replace a token on purpose, stop all pods, delete that Secret, put the new token
into operator.token in --out, and make the Secret again before the pods start.`,
		Example: `  memctl cluster secrets --out secrets | kubectl create -f -
  memctl cluster secrets --out secrets --kube-namespace memory --nodes 7 --host mneme.example.org | kubectl create -f -
  memctl cluster secrets --renew --out secrets | kubectl apply --server-side --force-conflicts -f -`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opt.check(cmd); err != nil {
				return err
			}
			if err := opt.recall(cmd); err != nil {
				return err
			}
			if err := opt.whole(); err != nil {
				return err
			}
			secrets, err := opt.make(cmd.Context(), a)
			switch {
			case errors.Is(err, devca.ErrAuthority):
				return memory.Errorf(memory.CodeInvalid, "%v", err).
					WithHint("put the missing file back, or make new secrets for all with another --out").WithCause(err)
			case errors.Is(err, devca.ErrSecret):
				return memory.Errorf(memory.CodeInvalid, "%v", err).
					WithHint("put back what it was: pods that have started can read nothing with another one").WithCause(err)
			}
			if err != nil {
				return err
			}
			var names []string
			for _, s := range secrets {
				names = append(names, s.Metadata.Name)
			}
			var text bytes.Buffer
			for _, s := range secrets {
				text.WriteString("---\n")
				e := yaml.NewEncoder(&text)
				e.SetIndent(2)
				if err := e.Encode(s); err != nil {
					return fmt.Errorf("encode secrets: %w", err)
				}
			}
			return a.emit(kubeList{"v1", "List", secrets}, names, func() { a.printf("%s", &text) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.out, "out", "", "directory of the authorities, the master key and the token, made when missing")
	f.StringVar(&opt.namespace, "kube-namespace", "mneme", "`namespace` of Kubernetes that the Secrets are for")
	f.StringVar(&opt.name, "name", "mneme", "`name` of the StatefulSet and of the service that clients use")
	f.StringVar(&opt.domain, "cluster-domain", "cluster.local", "`domain` of the names in the cluster")
	f.StringArrayVar(&opt.hosts, "host", nil, "one more name or address by which clients reach the nodes, such as that of an ingress; may be repeated")
	f.IntVar(&opt.nodes, "nodes", 5, "how many pods there may be")
	f.IntVar(&opt.days, "days", 365, "how long the certificates count")
	f.BoolVar(&opt.keysOnly, "keys-only", false, "print NAME-keys alone, and make no certificates, which come from elsewhere such as cert-manager")
	f.BoolVar(&opt.renew, "renew", false, "print NAME-peers and NAME-tls alone, with certificates made anew from the authorities in --out, which have to be there")
	return cmd
}

func (o *secretsOptions) check(cmd *cobra.Command) error {
	switch {
	case o.out == "":
		return usage(cmd, "--out is missing")
	case o.renew && o.keysOnly:
		return usage(cmd, "--renew makes certificates and --keys-only makes none: give one of them")
	case o.nodes < 1:
		return usage(cmd, "--nodes must be at least 1, not %d", o.nodes)
	case o.days < 1:
		return usage(cmd, "--days must be at least 1, not %d", o.days)
	case o.namespace == "" || o.domain == "":
		return usage(cmd, "--kube-namespace and --cluster-domain may not be empty")
	}
	if bad := memory.CheckName("service", o.name); bad != nil {
		return bad
	}
	return nil
}

// make makes what the Secrets hold. The keys come first: a folder with an authority has had
// its keys.
func (o *secretsOptions) make(ctx context.Context, a *app) ([]kubeSecret, error) {
	var keys []kubeSecret
	if !o.renew {
		drawn, err := o.drawKeys(ctx, a)
		if err != nil {
			return nil, err
		}
		keys = append(keys, drawn)
	}
	if err := o.remember(false); err != nil {
		return nil, err
	}
	if o.keysOnly {
		return keys, nil
	}
	certificates, err := o.certificates()
	if err != nil {
		return nil, err
	}
	return append(certificates, keys...), o.remember(true)
}

// certificates makes those of nodes and the one towards clients, anew if they are there.
func (o *secretsOptions) certificates() ([]kubeSecret, error) {
	inside := o.namespace + ".svc"
	peers := map[string]string{}
	clients := append([]string{o.name + "." + o.namespace, o.name + "." + inside, o.name + "." + inside + "." + o.domain}, o.hosts...)
	for i := range o.nodes {
		id := fmt.Sprintf("%s-%d", o.name, i)
		host := fmt.Sprintf("%s.%s-peers.%s", id, o.name, inside)
		made, err := devca.Make(devca.Options{Dir: o.out, Use: devca.ForNodes, Nodes: []string{id}, Hosts: []string{host, host + "." + o.domain}, Valid: o.valid()})
		if err != nil {
			return nil, err
		}
		if err := readInto(peers, map[string]string{"ca.crt": made.Authority, id + ".crt": made.Nodes[0].Cert, id + ".key": made.Nodes[0].Key}); err != nil {
			return nil, err
		}
		clients = append(clients, host+"."+o.domain)
	}
	towards := map[string]string{}
	made, err := devca.Make(devca.Options{Dir: filepath.Join(o.out, "clients"), Use: devca.ForServers, Nodes: []string{o.name}, Hosts: clients, Valid: o.valid()})
	if err != nil {
		return nil, err
	}
	if err := readInto(towards, map[string]string{"ca.crt": made.Authority, "tls.crt": made.Nodes[0].Cert, "tls.key": made.Nodes[0].Key}); err != nil {
		return nil, err
	}
	return []kubeSecret{o.secret("peers", "Opaque", peers), o.secret("tls", "kubernetes.io/tls", towards)}, nil
}

// drawKeys makes the master key and the token, or finds them.
func (o *secretsOptions) drawKeys(ctx context.Context, a *app) (kubeSecret, error) {
	keys := map[string]string{}
	for _, name := range keyFiles {
		var err error
		path := filepath.Join(o.out, name)
		keys[name], err = devca.Draw(path)
		if errors.Is(err, devca.ErrSecret) && name == masterKeyFile {
			keys[name], err = keyOf(ctx, a, path, err)
		}
		if err != nil {
			return kubeSecret{}, err
		}
	}
	secret := o.secret("keys", "Opaque", keys)
	secret.Immutable = true // another master key or token under this name is a mistake
	return secret, nil
}

// keyOf is the master key in a file as a data directory has it, which a restore gives back; or
// the error bad, if it is none.
func keyOf(ctx context.Context, a *app, path string, bad error) (string, error) {
	if text, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(text, []byte("mneme-master-key ")) {
		return "", bad
	}
	work, err := a.sys.work()
	if err != nil {
		return "", err
	}
	key, err := work.MasterKey(ctx, path)
	if err != nil {
		return "", bad
	}
	return key, nil
}

func (o *secretsOptions) valid() time.Duration { return time.Duration(o.days) * 24 * time.Hour }

func (o *secretsOptions) secret(what, kind string, data map[string]string) kubeSecret {
	encoded := map[string]string{}
	for key, text := range data {
		encoded[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	return kubeSecret{
		APIVersion: "v1", Kind: "Secret", Type: kind, Data: encoded,
		Metadata: kubeMetadata{o.name + "-" + what, o.namespace, map[string]string{"app.kubernetes.io/name": "mneme", "app.kubernetes.io/instance": o.name}},
	}
}

func readInto(data map[string]string, files map[string]string) error {
	for key, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		data[key] = string(text)
	}
	return nil
}
