package docker

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// works makes an environment through the endpoint, talks to it and removes it.
func works(t *testing.T, b *Backend, host string) {
	t.Helper()
	binding := newBinding(t, b, bare(t))
	binding.Profile.DockerHost = host
	h, binding := created(t, b, binding)
	stream := must(h.Dial(t.Context(), binding))(t)
	if stream.SharedDirectory != "" {
		t.Errorf("a daemon elsewhere is said to share %s", stream.SharedDirectory)
	}
	r := bufio.NewReader(stream)
	if line := must(r.ReadString('\n'))(t); line != stream.Mark+"\n" {
		t.Errorf("got %q", line)
	}
	if _, err := stream.Write([]byte("there and back\n")); err != nil {
		t.Fatal(err)
	}
	if line := must(r.ReadString('\n'))(t); line != "there and back\n" {
		t.Errorf("got %q", line)
	}
	if err := stream.ReadWriteCloser.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest := must(io.ReadAll(r))(t); string(rest) != "end of input\n" {
		t.Errorf("after the end of the input came %q", rest)
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	if err := h.Remove(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	if got := left(t, binding.Store); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
}

// A double for ssh that is on the far machine at once: it runs the command that
// ssh is told to run there.
func TestThroughSSH(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ssh"), `#!/bin/sh
while [ "$1" != -- ]; do shift; done
[ "$2" = box ] || exit 255
shift 2
exec "$@"
`)
	if err := os.Chmod(filepath.Join(dir, "ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	works(t, newBackend(t, echo(t)), "ssh://me@box:2222")
}

func TestThroughTLS(t *testing.T) {
	certs := t.TempDir()
	address := serveTLS(t, certs)
	env := map[string]string{"DOCKER_CERT_PATH": certs, "DOCKER_TLS_VERIFY": "1"}
	withEnv := func() *Backend {
		b := newBackend(t, echo(t))
		b.chooser.getenv = func(name string) string { return env[name] }
		return b
	}
	works(t, withEnv(), "tcp://"+address)

	refused := func(name, hint string) {
		t.Helper()
		h, binding, err := withEnv().host(bindingTo("tcp://" + address))
		if err == nil {
			err = h.Create(t.Context(), binding, nil)
		}
		if err == nil || !strings.Contains(err.Error(), address) || !strings.Contains(tool.HintOf(err), hint) {
			t.Errorf("%s: got %v (%s)", name, err, tool.HintOf(err))
		}
	}
	env = map[string]string{}
	refused("without TLS", "TLS")
	strangers := t.TempDir()
	serveTLS(t, strangers)
	env = map[string]string{"DOCKER_CERT_PATH": strangers}
	refused("with another authority", "certificates")
	env = map[string]string{"DOCKER_CERT_PATH": t.TempDir()}
	if _, _, err := withEnv().host(bindingTo("tcp://" + address)); tool.KindOf(err) != tool.ConfigInvalid {
		t.Errorf("without the files: %v", err)
	}
}

// serveTLS puts TLS with certificates on both sides before the daemon of this
// machine, and writes the client's files as the docker CLI wants them.
func serveTLS(t *testing.T, certs string) (address string) {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: must(x509.MarshalECPrivateKey(key))(t)})
	write(t, filepath.Join(certs, "ca.pem"), string(certPEM))
	write(t, filepath.Join(certs, "cert.pem"), string(certPEM))
	write(t, filepath.Join(certs, "key.pem"), string(keyPEM))

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	listener := must(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{must(tls.X509KeyPair(certPEM, keyPEM))(t)},
		ClientCAs:    pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}))(t)
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wait.Go(func() { relay(conn.(*tls.Conn)) })
		}
	})
	t.Cleanup(func() { listener.Close(); wait.Wait() })
	return listener.Addr().String()
}

// relay joins a connection to the daemon, half-closing as either side does.
func relay(conn *tls.Conn) {
	defer conn.Close()
	daemon, err := net.Dial("unix", strings.TrimPrefix(defaultHost(), "unix://"))
	if err != nil {
		return
	}
	defer daemon.Close()
	var wait sync.WaitGroup
	wait.Go(func() {
		_, _ = io.Copy(daemon, conn) // either end of it is the end
		_ = daemon.(*net.UnixConn).CloseWrite()
	})
	wait.Go(func() {
		_, _ = io.Copy(conn, daemon)
		_ = conn.CloseWrite()
		conn.Close() // the client keeps connections that nobody answers any more
	})
	wait.Wait()
}
