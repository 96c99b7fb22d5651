package wire

import "time"

// The far end's subcommand "site" looks after the directories of environments on
// a machine that is not theirs alone. It reads one [SiteRequest] from its
// standard input, as a line, and answers with one line that is a [SiteReply].

// Actions of a site.
const (
	// SiteCreate makes the environment's directory. Where one of the same
	// environment is there already it makes nothing and replies with its record,
	// unless the request's Replace is that record's nonce.
	SiteCreate = "create"
	// SiteFill unpacks the tar archive that follows the request into the workspace
	// of an environment that was just made, whose record's nonce Replace is.
	SiteFill = "fill"
	// SiteFind finds what was created, or fails with environmentLost.
	SiteFind = "find"
	// SiteRemove ends the environment's workers in order and removes its
	// directory. What is gone is no error; what is somebody else's is one.
	SiteRemove = "remove"
	// SiteList replies with the records of the store's environments.
	SiteList = "list"
	// SiteProve tries whether the directory can be written, and whether a
	// confined command's write is refused.
	SiteProve = "prove"
	// SiteInstall makes the program that runs the worker of its build: it writes
	// it through to the disk and renames it, in its own directory, to Name.
	SiteInstall = "install"
	// SiteSweep removes the workers of other builds that nothing runs and nobody
	// has used for OlderThan.
	SiteSweep = "sweep"
)

// SiteWorkspace is the name of the workspace in an environment's directory.
const SiteWorkspace = "workspace"

// SiteRequest is what a site is asked for.
type SiteRequest struct {
	Action string `json:"action"`
	// Sum is the SHA-256 that the program itself must have, in hex; empty checks
	// nothing.
	Sum string `json:"sum,omitempty"`
	// Directory is the parent of the environments' directories: an absolute path.
	Directory string `json:"directory,omitempty"`
	// Record is the environment that create, find and remove are about, and whose
	// store list is about. Create writes it as it is, but for its date.
	Record SiteRecord `json:"record"`
	// Replace is the nonce of the record that create may replace, and the only
	// one that fill fills and remove removes; empty lets remove any of the environment.
	Replace string `json:"replace,omitempty"`
	// ShutdownMS is what each worker gets to end in order, in milliseconds.
	ShutdownMS int64 `json:"shutdown_ms,omitempty"`
	// Name is the file name of an installed worker; for remove, the name of a
	// directory that list found under another than its environment's.
	Name string `json:"name,omitempty"`
	// OlderThanMS and DryRun bound sweep: milliseconds since the last use. A create
	// with OlderThanMS sweeps too.
	OlderThanMS int64 `json:"older_than_ms,omitempty"`
	DryRun      bool  `json:"dry_run,omitempty"`
}

// SiteRecord says whose a directory is. It lies in it, out of reach of confined
// commands, and proves that the directory is ours to remove.
type SiteRecord struct {
	// Format is 1.
	Format      int    `json:"format"`
	Environment string `json:"environment"`
	Store       string `json:"store"`
	// Session is the one that made it; Shared and Persistent are its profile's.
	Session    string    `json:"session,omitempty"`
	Shared     bool      `json:"shared,omitempty"`
	Persistent bool      `json:"persistent,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	// Nonce tells the directory from a later one of the same environment.
	Nonce string `json:"nonce"`
	// Owner is the process of a service that made it.
	Owner SiteOwner `json:"owner"`
}

// SiteOwner is a process of the service's machine.
type SiteOwner struct {
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Start string `json:"start,omitempty"`
}

// SiteReply is what a site answers.
type SiteReply struct {
	// Error and Detail are as in a frame.
	Error  string       `json:"error,omitempty"`
	Detail *ErrorDetail `json:"detail,omitempty"`
	// Existed says that create found the environment of Record there and made
	// none.
	Existed bool        `json:"existed,omitempty"`
	Record  *SiteRecord `json:"record,omitempty"`
	Place   *SitePlace  `json:"place,omitempty"`
	// Found are the environments of list.
	Found []SiteFound `json:"found,omitempty"`
	// Facts are what prove found out, in words.
	Facts *SiteFacts `json:"facts,omitempty"`
	// Swept are the directories of old workers.
	Swept []string `json:"swept,omitempty"`
}

// SitePlace is where the parts of an environment are, as absolute paths.
type SitePlace struct {
	// Directory is the environment's own; the others lie below it, but for the
	// sockets where its path is too long for them.
	Directory string `json:"directory"`
	Workspace string `json:"workspace"`
	State     string `json:"state"`
	Sockets   string `json:"sockets"`
}

// SiteFound is one environment that list found.
type SiteFound struct {
	Record SiteRecord `json:"record"`
	// Name is the directory's, which is another than the environment's while it
	// is not complete.
	Name string `json:"name"`
	// Live says that a worker of it runs.
	Live bool `json:"live,omitempty"`
}

// SiteFacts are what prove tried; an empty error is a success.
type SiteFacts struct {
	Writable ErrorText `json:"writable"`
	Confined ErrorText `json:"confined"`
	// Landlock is the version of its interface, 0 for none.
	Landlock int `json:"landlock"`
	// Kernel is the release of the running kernel, where it is to be known.
	Kernel string `json:"kernel,omitempty"`
}

// ErrorText is an error as text, with what to do about it.
type ErrorText struct {
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
}

// Fail makes the reply that of an error.
func (r *SiteReply) Fail(err error) {
	f := errorFrame("", err, true)
	*r = SiteReply{Error: f.Error, Detail: f.Detail}
}

// Err is the error of a reply, nil for none. Its texts are the peer's, bounded.
func (r *SiteReply) Err() error {
	if r.Error == "" {
		return nil
	}
	e := peerError([]byte(r.Error), nil)
	if d := r.Detail; d != nil {
		if d.Kind.Valid() {
			e.Kind = d.Kind
		}
		e.Hint, e.Path, e.Retryable = clip(d.Hint), clip(d.Path), d.Retryable
	}
	return e
}
