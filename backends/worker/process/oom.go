package process

import "github.com/caisson-dev/caisson/backends/tool"

// killedCode is the exit code with which a shell tells that SIGKILL has ended what it ran.
const killedCode = 128 + 9

// oomWatch is what is known at the start of a command, to tell at its end whether
// memory was short meanwhile.
type oomWatch struct {
	kills   uint64 // how many processes the kernel had ended for that
	known   bool   // kills is
	order   uint64 // which admitted command it is
	company bool   // others ran, or what others had left behind
}

// begin notes the count.
func (w *oomWatch) begin(m *Manager) { w.kills, w.known = m.oomKills() }

// outOfMemory tells whether the kernel has ended p for want of memory, with this code
// and signal: it was killed, not from here, and the kernel's count has risen.
func (p *proc) outOfMemory(code int, signal string) tool.OOMKilled {
	if signal != "SIGKILL" && code != killedCode || !p.oom.known {
		return ""
	}
	p.mu.Lock()
	ours := p.struck || p.stopping != nil
	p.mu.Unlock()
	if ours {
		return ""
	}
	if now, known := p.m.oomKills(); !known || now <= p.oom.kills {
		return ""
	}
	p.m.mu.Lock()
	company := p.oom.company || p.m.admitted != p.oom.order
	p.m.mu.Unlock()
	if company || p.m.o.Shared || !p.m.o.Contained {
		return tool.OOMProbable
	}
	return tool.OOMCertain
}
