package tool

// Pack is an executable inside an environment that offers tools.
type Pack struct {
	// Name tells the pack from others, in messages.
	Name string `json:"name"`
	// Command is the program and its arguments. With a source, "${source}" stands
	// for the source's file in them; where it does not stand, the source is the
	// program.
	Command []string `json:"command"`
	// SHA256 is what the source must hash to, in 64 hex digits; "" for a pack that
	// is in the environment already.
	SHA256 string `json:"sha256,omitempty"`
	// Source is the source's file on the service's machine, which is put into the
	// environment. It is not saved.
	Source string `json:"-"`
}

// SourceMark stands for a pack's source in its command.
const SourceMark = "${source}"

// MaxPackSource is the longest source of a pack, in bytes.
const MaxPackSource = MaxFileBytes
