package connection

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// dial makes a connection over r, in this process if that can be.
func (p *Pool) dial(ctx context.Context, r *Route, progress backends.Progress) (*link, error) {
	if r.beyond != "" {
		return p.master(ctx, r, progress, r.beyond)
	}
	l, err := p.follow(ctx, r, progress)
	if err == nil {
		return l, nil
	}
	var refused *authError
	var negotiation *ssh.AlgorithmNegotiationError
	var why string
	switch {
	case errors.As(err, &refused) && refused.openSSHMay():
		why = "authentication"
	case errors.As(err, &negotiation):
		why = negotiation.What + " algorithms"
	default:
		return nil, err
	}
	if r.program == "" || !canMaster {
		return nil, err
	}
	p.log.Debug("OpenSSH takes over", "route", r.String(), "error", err)
	return p.master(ctx, r, progress, why)
}

// follow connects hop by hop.
func (p *Pool) follow(ctx context.Context, r *Route, progress backends.Progress) (*link, error) {
	var clients []*ssh.Client
	var heard *heardConn
	// The first ends at once, and with it all that runs through it.
	shut := func() error {
		var err error
		if heard != nil {
			err = heard.Close()
		}
		for _, c := range clients {
			c.Close()
		}
		return err
	}
	var before *hop
	for _, h := range r.hops {
		progress.Report("connecting to " + h.String())
		client, conn, err := p.reach(ctx, h, before, clients, shut, progress)
		if err != nil {
			_ = shut() // what matters is err
			return nil, err
		}
		if heard == nil {
			heard = conn
		}
		clients = append(clients, client)
		before = h
	}
	return p.newLink(r, clients[len(clients)-1], heard, shut), nil
}

// hop connects to one host: directly, or through the last of clients, which is
// the connection to before. abort ends all of clients.
func (p *Pool) hop(ctx context.Context, h, before *hop, clients []*ssh.Client, abort func() error) (*ssh.Client, *heardConn, error) {
	limit := h.Settings.timeout()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var conn *heardConn
	late := func(err error) error {
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded) && conn != nil && conn.last.Load() > 0:
			return unreachable(h, fmt.Errorf("it answers, and the handshake took longer than %s", limit)).
				WithHint("on a link that is so slow set ConnectTimeout for it in the ssh configuration, in seconds; else see what keeps the machine busy")
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return unreachable(h, fmt.Errorf("%w as an ssh server within %s", errSilent, limit)).
				WithHint("see whether the machine is up, and whether %s is the port of its ssh server", address(h.Host, h.Port))
		case ctx.Err() != nil:
			return &tool.Error{Kind: tool.EndKind(ctx), Message: "connecting to " + h.String() + " was cancelled", Err: context.Cause(ctx)}
		}
		return err
	}
	known, err := readKnownHosts(h)
	if err != nil {
		return nil, nil, tool.Errorf(tool.BackendUnavailable, "connecting to %s: %w", h, err)
	}
	offers, err := identities(ctx, h, p.log)
	if err != nil {
		return nil, nil, err
	}
	defer offers.close()
	raw, err := p.connect(ctx, h, before, clients)
	if err != nil {
		return nil, nil, late(unreachable(h, err))
	}
	conn = newHeardConn(raw)
	// Not a deadline: what runs through a jump host has none, and blocks until
	// the connection to that has ended.
	stop := context.AfterFunc(ctx, func() {
		conn.Close()
		_ = abort() // what matters is that it is over
	})
	defer stop()

	a := &authenticator{hop: h, offers: offers}
	var refused error
	verified := false
	config := &ssh.ClientConfig{
		Config: ssh.Config{
			KeyExchanges: usable(h.Settings.get("kexalgorithms"), kexOf),
			Ciphers:      usable(h.Settings.get("ciphers"), ciphersOf),
			MACs:         usable(h.Settings.get("macs"), macsOf),
		},
		User:         h.User,
		AuthCallback: a.method,
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			refused = known.check(h, key)
			verified = refused == nil
			return refused
		},
		HostKeyAlgorithms: known.algorithms(h),
	}
	sc, chans, reqs, err := ssh.NewClientConn(conn, address(h.Host, h.Port), config)
	if err == nil && !stop() {
		sc.Close()
		return nil, nil, late(ctx.Err())
	}
	if err == nil {
		return ssh.NewClient(sc, chans, reqs), conn, nil
	}
	var hostKey *hostKeyError
	var negotiation *ssh.AlgorithmNegotiationError
	switch {
	case errors.As(refused, &hostKey):
		hostKey.over = before
		return nil, nil, hostKey.public()
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && a.wanted != nil:
		// It was not the machine that did not answer.
		a.failed = fmt.Errorf("it took longer than %s", limit)
		return nil, nil, (&authError{a: a, cause: err}).public()
	case ctx.Err() != nil:
		return nil, nil, late(err)
	case errors.As(err, &negotiation):
		return nil, nil, tool.Errorf(tool.BackendUnavailable, "connecting to %s: %w", h, err).
			WithHint("see KexAlgorithms, Ciphers, MACs and HostKeyAlgorithms in the ssh configuration, and what the server has")
	case verified && authenticationFailed(err, a):
		return nil, nil, (&authError{a: a, cause: err}).public()
	case !verified && refused == nil && hungUp(err):
		end := &hangUp{err: err}
		if !conn.greeting.done {
			end.said = strings.TrimSpace(string(conn.greeting.said))
		}
		return nil, nil, unreachable(h, end)
	default:
		return nil, nil, unreachable(h, err)
	}
}

// authenticationFailed tells a refusal from a connection that broke meanwhile.
func authenticationFailed(err error, a *authenticator) bool {
	text := err.Error()
	return strings.Contains(text, "unable to authenticate") ||
		strings.Contains(text, "oo many authentication") ||
		a.wanted != nil
}

// connect opens the byte stream to h.
func (p *Pool) connect(ctx context.Context, h, before *hop, clients []*ssh.Client) (net.Conn, error) {
	if before != nil {
		conn, err := clients[len(clients)-1].DialContext(ctx, "tcp", address(h.Host, h.Port))
		if err != nil {
			return nil, fmt.Errorf("through %s: %w", before, err)
		}
		return conn, nil
	}
	network := "tcp"
	switch h.Settings.get("addressfamily") {
	case "inet":
		network = "tcp4"
	case "inet6":
		network = "tcp6"
	}
	var d net.Dialer
	if bind := h.Settings.set("bindaddress"); bind != "" {
		local, err := net.ResolveTCPAddr(network, net.JoinHostPort(strings.Trim(bind, "[]"), "0"))
		if err != nil {
			return nil, fmt.Errorf("BindAddress: %w", err)
		}
		d.LocalAddr = local
	}
	var err error
	for left := h.Settings.number("connectionattempts", 1); left > 0; left-- {
		var conn net.Conn
		if conn, err = d.DialContext(ctx, network, address(h.Host, h.Port)); err == nil {
			return conn, nil
		}
		if left > 1 {
			// As ssh does, once a second.
			pause := time.NewTimer(time.Second)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
				return nil, err
			}
		}
	}
	return nil, err
}

// unreachable is the error for a host that could not be spoken to, now.
func unreachable(h *hop, err error) *tool.Error {
	e := tool.Errorf(tool.BackendUnavailable, "%s cannot be reached: %w", h, err)
	e.Retryable = true
	var dns *net.DNSError
	switch {
	case noName(h.Host):
		e.Retryable = false
		return e.WithHint("%s is more than a name: an address has no brackets here, and user and port have members of their own", h.Host)
	case errors.As(err, &dns) && dns.IsNotFound:
		return e.WithHint("there is no host of the name %s; is it spelt as in the ssh configuration?", h.Host)
	case hungUp(err):
		return e.WithHint(fullHint)
	}
	return e.WithHint("see whether the machine is up and whether an ssh server listens on %s", address(h.Host, h.Port))
}
