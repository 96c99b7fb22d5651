// Package sshtest runs real OpenSSH servers for tests: on a free loopback port,
// from a temporary directory, as the test's own user, with host keys,
// authorised keys and limits of their own. No file of the user's ~/.ssh is read
// or written.
//
// The accounts that need a server started by root come from the test rig: see
// [Accounts].
package sshtest
