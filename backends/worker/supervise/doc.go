// Package supervise starts workers and keeps them where nobody else does:
// [Init] is the first process of a container, [Attach] the small command that
// joins the standard streams of an exec to a worker, and starts that worker when
// none listens, [Start] starts one that outlives its starter. [Main] makes
// subcommands of them. None of them looks into the bytes that pass.
package supervise
