package node

import (
	"log/slog"

	"mneme/internal/api/rest"
	"mneme/internal/peer"
)

// Check says what of a configuration cannot work or is not safe, without opening or reading
// anything. Errors are *StartError.
func (c Config) Check() error {
	c.setDefaults()
	if err := c.validate(); err != nil {
		return err
	}
	if _, err := rest.NewGuard("", c.AllowedHosts, c.AllowedOrigins); err != nil {
		return usage(err.Error(), originHint)
	}
	return nil
}

const originHint = "an origin looks like https://app.example:8443"

// CheckFiles is Check, and looks at the data directory's mode and at the certificates that the
// configuration names.
func (c Config) CheckFiles() error {
	if err := c.Check(); err != nil {
		return err
	}
	if err := CheckDataDir(c.DataDir); err != nil {
		return err
	}
	silent := slog.New(slog.DiscardHandler)
	if err := new(front).openCertificates(c.TLS, silent); err != nil {
		return err
	}
	if c.Cluster == nil {
		return nil
	}
	if _, err := peer.OpenCertificates(c.Cluster.Certs, c.Cluster.NodeID, silent); err != nil {
		return certificateError(err, peer.CertificatesHint(c.Cluster.Certs, c.Cluster.NodeID))
	}
	return nil
}
