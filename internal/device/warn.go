package device

// Warn logs a warning for the user of a GPU, as slog.Warn does, which package cuda
// sets it to: a program that links no driver links no log either.
var Warn = func(msg string, args ...any) {}
