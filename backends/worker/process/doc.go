// Package process starts commands and keeps them: foreground ones until they
// end, background ones in a durable registry with their output on disk. It
// decides what a command inherits, who may stop it, and that nothing of it is
// left behind. Nothing here knows tools or the wire.
//
// # Layout
//
// StateDir/sessions/<session>/processes holds journal, the records of all
// processes, of which each change is one appended line; <id>.output, a ring of
// a process's last bytes; and lock and instance, which tell whether a Manager
// lives and which one it was. The temporary directories of commands are
// StateDir/sessions/<session>/tmp/<mode>. Nothing is synced: a crash of the
// machine ends the processes too, and the boot id in a record tells.
//
// # Identity
//
// A pid is only a process's while its record's start time, boot id and pid
// namespace agree; anything else is lost and never signalled. Every command
// carries the variable CAISSON_PROCESS, by which what it left behind is found
// even after it left its session and its parents.
package process
