package check

import (
	"strings"

	"github.com/caisson-dev/caisson/backends/wire"
)

func jobs() []clause {
	return []clause{
		rule("job", sectionJobs, "job/run gives the output and what the program left, the script and the inputs aside", driveJob).unprepared().given(clauseBulk),
		rule("job-inputs", sectionJobs, "an input does not lie outside of the job's directory", driveJobInputs).unprepared().given(clauseBulk),
		rule("job-ends", sectionJobs, "a job that is out of time is killed with what it has started, and says how far it came", driveJobEnds).unprepared().given(clauseBulk),
	}
}

// runsJobs ends the trial unless jobs can be run, and opens an adapter that is told
// what they need.
func (t *trial) runsJobs() {
	t.needs(wire.CapJob)
	t.needs(wire.CapBulk)
	if t.known.mode == "" {
		t.notOffered("it runs no commands")
	}
	t.told(wire.CapBulk)
}

// job sends a job whose contents are these.
func (t *trial) job(data args, contents ...string) reply {
	data = data.with("actor", t.peer.session).with("permission_mode", t.known.mode)
	return t.sendBody(wire.MethodJobRun, data, strings.Join(contents, ""))
}

// done is what a job came to, and its standard output and error.
func (t *trial) done(r reply) (a args, out, err string) {
	t.want(r.failed == "", "job/run failed: %s", r.failed)
	a = t.object("the reply to job/run", r.data, "stdout_bytes:number exit_code:number signal?:string timed_out?:bool truncated?:bool files?:list files_dropped?:number")
	n, _ := a["stdout_bytes"].(float64)
	t.want(n >= 0 && int(n) <= len(r.body), "stdout_bytes must be no more than the body, which has %d bytes: %v", len(r.body), a)
	return a, string(r.body[:int(n)]), string(r.body[int(n):])
}

func driveJob(t *trial) {
	t.runsJobs()
	const script, stdin, one, two = "cat one in/two; cat; echo err >&2; echo left > left; exit 3\n", "stdin\n", "1\n", "2\n"
	a, out, errs := t.done(t.job(args{
		"script": args{"interpreter": "sh", "bytes": len(script)}, "stdin_bytes": len(stdin),
		"inputs": []args{{"path": "one", "bytes": len(one)}, {"path": "in/two", "bytes": len(two)}},
	}, script, stdin, one, two))
	t.want(out == "1\n2\nstdin\n" && errs == "err\n" && a["exit_code"] == 3.0, "the program must get its inputs, and its output must come back: %v %q %q", a, out, errs)
	files := list(a["files"])
	t.want(len(files) == 1, "files must be what it left, the script and the inputs aside: %v", files)
	f, _ := files[0].(map[string]any)
	w := wrong(f, "path:string size:number token:string")
	t.want(w == "", "a file: %s", w)
	t.want(f["path"] == "left" && f["size"] == 5.0, "the file must be called left and have 5 bytes: %v", f)
	r := t.ask(wire.MethodExportStream, args{"token": f["token"]})
	t.want(r.failed == "" && string(r.body) == "left\n", "export/stream must give the file, not %q: %s", r.body, r.failed)
	t.must(wire.MethodExportClose, args{"token": f["token"]})
}

func driveJobInputs(t *trial) {
	t.runsJobs()
	r := t.job(args{"argv": []string{"true"}, "inputs": []args{{"path": "../check-escape", "bytes": 1}}}, "x")
	t.want(r.failed != "", "an input ../check-escape must be refused, and was not: %s", r.data)
}

// driveJobEnds gives a busy machine more time for the job to print.
func driveJobEnds(t *trial) {
	t.runsJobs()
	const line = "sleep 300 </dev/null >/dev/null 2>&1 & echo $!; sleep 300"
	for _, ms := range []int{1000, 4000, 16000} {
		a, out, _ := t.done(t.job(args{"argv": []string{"sh", "-c", line}, "timeout_ms": ms}))
		t.want(a["timed_out"] == true, "a job over its time must say timed_out: %v", a)
		pid := strings.TrimSpace(out)
		if pid == "" {
			continue
		}
		t.want(!t.lives(pid), "what the job has started, the process %s, must not live on", pid)
		return
	}
	t.broken("a job that is out of time must give what it had printed")
}

// lives asks a command of the adapter whether a process runs beside it. One that has
// ended, reaped or not, has no command line; one that was just killed gets a moment.
func (t *trial) lives(pid string) bool {
	looked := t.command("for i in 1 2 3 4 5 6 7 8 9 10; do grep -q . /proc/" + pid + "/cmdline 2>/dev/null || exit 0; sleep 0.1; done; echo lives")
	return looked["stdout"] != ""
}
