package main

import (
	"bytes"
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
	keysOnly                     bool
}

func clusterSecretsCmd(a *app) *cobra.Command {
	var opt secretsOptions
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "Print the Secrets that Mneme needs in Kubernetes",
		Long: `Print the three Secrets that the manifests in deploy/k8s mount: certificates by which
the pods know each other (NAME-peers), the certificate that clients are shown with its
authority (NAME-tls), and the master key with the operator token (NAME-keys).

What they are made of stays in --out: the authorities, the master key and the token. The
next call prints certificates anew and the same master key and token: renew with it
before the certificates end, or add pods with a larger --nodes. Running pods take renewed
certificates. Keep the folder where you keep secrets: without the master key nothing that
the volumes hold can be read.`,
		Example: `  memctl cluster secrets --out secrets | kubectl apply --server-side -f -
  memctl cluster secrets --out secrets --kube-namespace memory --nodes 7 --host mneme.example.org | kubectl apply --server-side -f -`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opt.check(cmd); err != nil {
				return err
			}
			secrets, err := opt.make()
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
	return cmd
}

func (o *secretsOptions) check(cmd *cobra.Command) error {
	switch {
	case o.out == "":
		return usage(cmd, "--out is missing")
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

// make makes what the Secrets hold.
func (o *secretsOptions) make() ([]kubeSecret, error) {
	if o.keysOnly {
		keys, err := o.drawKeys()
		return []kubeSecret{keys}, err
	}
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
	keys, err := o.drawKeys()
	if err != nil {
		return nil, err
	}
	return []kubeSecret{o.secret("peers", "Opaque", peers), o.secret("tls", "kubernetes.io/tls", towards), keys}, nil
}

// drawKeys makes the master key and the token, or finds them.
func (o *secretsOptions) drawKeys() (kubeSecret, error) {
	keys := map[string]string{}
	for _, name := range []string{"master.key", "operator.token"} {
		var err error
		if keys[name], err = devca.Draw(filepath.Join(o.out, name)); err != nil {
			return kubeSecret{}, err
		}
	}
	return o.secret("keys", "Opaque", keys), nil
}

func (o *secretsOptions) valid() time.Duration { return time.Duration(o.days) * 24 * time.Hour }

func (o *secretsOptions) secret(what, kind string, data map[string]string) kubeSecret {
	encoded := map[string]string{}
	for key, text := range data {
		encoded[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	return kubeSecret{"v1", "Secret", kubeMetadata{o.name + "-" + what, o.namespace, map[string]string{"app.kubernetes.io/name": "mneme", "app.kubernetes.io/instance": o.name}}, kind, encoded}
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
