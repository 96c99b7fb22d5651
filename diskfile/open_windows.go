package diskfile

// NoFollow is the flag that keeps an open from following a link. There is none: to make
// links takes rights that users do not have.
const NoFollow = 0
