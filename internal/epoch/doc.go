// Package epoch is the protocol by which trees off the Go heap use memory again while
// readers go without locks, and keep it while snapshots need it. A tree counts two things,
// in one Clock:
//
//   - A generation ends when memory may be used again. A reader notes the generation when it
//     begins and compares it when it is done: Clock.Current.
//   - An epoch ends when a snapshot is taken. A node or value is part of the snapshots between
//     the epoch in which it was put in and the one in which it was taken out.
//
// A reference that is taken out of a tree goes through two waiting rooms: a List, as long as
// a snapshot has it, then a Limbo, for two generations. Values does both for references that
// stand for memory of the tree's user.
//
// The package knows no tree. docs/epochs.md says why it is right, what a tree has to do for
// it, and which parts trees do in different ways.
package epoch
