package meter

// Version says what [Instrument] makes of a module: it is another one whenever the
// same module and [Options] would give other bytes. What was instrumented by
// another version must not be used from a cache.
const Version = 1
