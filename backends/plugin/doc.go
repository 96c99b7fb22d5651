// Package plugin is what a tool of the user's own says: a registered WebAssembly
// module or a pack, an executable inside an environment. Both read one JSON object
// from standard input and write one to standard output:
//
//	{"action":"list"}                                → {"tools":[{"name":…,"description":…,"input_schema":…}]}
//	{"action":"run","name":…,"arguments":{…}}        → {"ok":true,"result":…} or {"ok":false,"error":…}
//
// Requests are made here and answers, which are nobody's but the program's, are
// checked and turned into descriptions and results. Nothing here runs anything,
// and JSON Schemas are looked at from outside only.
package plugin

// Limits of what a plugin answers.
const (
	// MaxList is the longest answer to the action list, in bytes.
	MaxList = 1 << 20
	// MaxTools is how many tools one plugin may have: all of them stand in what a
	// model reads.
	MaxTools = 128
	// maxName is the longest name of a tool, in bytes: what models' interfaces take.
	maxName = 64
	// maxDescription and maxSchema bound one tool's description and schema, in
	// bytes, for the same reason.
	maxDescription = 16 << 10
	maxSchema      = 64 << 10
	// maxDepth is how deep an answer may nest: it is walked by recursion.
	maxDepth = 64
	// MaxAnswer is the longest answer to the action run, in bytes: a result may
	// hold 2 MiB of data and 3 MiB in all, and its text is quoted.
	MaxAnswer = 8 << 20
	// MaxArguments is the longest arguments of a call, in bytes: what fits
	// the standard input of a command together with the request around it.
	MaxArguments = 15 << 20
	// maxQuoted is how much of an answer an error quotes, in bytes.
	maxQuoted = 160
)
