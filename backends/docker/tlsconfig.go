package docker

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"os"

	"github.com/caisson-dev/caisson/backends/tool"
)

// config reads the files. The server's name is the host's; only authorities in
// the CA file, if there is one, are trusted.
func (t *tlsFiles) config(host string) (*tls.Config, error) {
	failed := func(err error) error {
		return tool.Errorf(tool.ConfigInvalid, "the TLS files for the docker daemon at %s cannot be used: %w", host, err).
			WithHint("DOCKER_CERT_PATH, or the context, must hold ca.pem, cert.pem and key.pem")
	}
	u, err := url.Parse(host)
	if err != nil {
		return nil, failed(err)
	}
	config := &tls.Config{
		ServerName:         u.Hostname(),
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: t.SkipVerify, // what the user told the docker CLI for this context
	}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, failed(err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, tool.Errorf(tool.ConfigInvalid, "%s holds no certificate", t.CA)
		}
	}
	if t.Cert != "" || t.Key != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, failed(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
