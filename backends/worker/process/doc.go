// Package process starts commands and keeps them: foreground ones until they
// end, background ones in a durable registry with their output on disk. It
// decides what a command inherits, who may stop it, and that nothing of it is
// left behind. Nothing here knows tools or the wire.
//
// # Layout
//
// StateDir/sessions/<session>/processes holds one directory a process, with
// record.json, replaced atomically, and output, a ring of the last bytes; the
// file lock is held by the living Manager and instance names it. The temporary
// directories of commands are StateDir/sessions/<session>/tmp/<mode>. Nothing
// is synced: a crash of the machine ends the processes too, and the boot id in
// a record tells.
//
// # Identity
//
// A pid is only a process's while its record's start time, boot id and pid
// namespace agree; anything else is lost and never signalled. Every command
// carries the variable CAISSON_PROCESS, by which what it left behind is found
// even after it left its session and its parents.
package process
