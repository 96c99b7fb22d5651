package diskfile

// NoFollow is the flag that keeps an open from following a link. There is none: to make
// links takes rights that users do not have.
const NoFollow = 0

// MovesOpen says that a file can be moved while it is open, and a directory while a file
// in it is. Windows keeps both in their places.
const MovesOpen = false
