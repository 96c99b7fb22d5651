// Package connection reaches a machine as the user's own ssh would reach it.
//
// The user's and the system's ssh configuration is resolved by `ssh -G`, which
// knows all of it. A route that golang.org/x/crypto/ssh can follow is followed
// in this process; what only OpenSSH can do (a ProxyCommand, hardware keys, a
// second factor, ...) goes through an OpenSSH master that is started here and
// joined. Host keys are checked strictly in every case, whatever the
// configuration says, and nobody is ever asked anything.
//
// What is done on the machine once it is reached does not belong here.
package connection
