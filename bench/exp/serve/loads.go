package serve

import "slices"

// load is what a client asks: some commands that are sent together, and their replies.
type load struct {
	name  string
	steps int // operations of a turn
	ask   func(w *wire, all []uint64)
	hear  func(w *wire, all []uint64) error
}

// some draws keys.
func some(w *wire, all []uint64, n int) []uint64 {
	w.keys = w.keys[:0]
	for range n {
		w.keys = append(w.keys, all[w.rng.IntN(len(all))])
	}
	return w.keys
}

func getOne(deep int) load {
	return load{"GET", deep, func(w *wire, all []uint64) {
		for _, k := range some(w, all, deep) {
			w.begin(2)
			w.text("GET")
			w.key("", k)
		}
	}, func(w *wire, _ []uint64) error {
		for _, k := range w.keys {
			if err := w.isVal(k); err != nil {
				return err
			}
		}
		return nil
	}}
}

func setOne(deep int) load {
	return load{"SET", deep, func(w *wire, all []uint64) {
		for _, k := range some(w, all, deep) {
			w.begin(3)
			w.text("SET")
			w.key("", k)
			w.val(k)
		}
	}, func(w *wire, _ []uint64) error {
		for range w.keys {
			if err := w.ok(); err != nil {
				return err
			}
		}
		return nil
	}}
}

// counters begin with a letter behind all digits, so that ranges of keys do not have them.
const counters = "n:"

func incrOne(deep int) load {
	return load{"INCR", deep, func(w *wire, all []uint64) {
		for _, k := range some(w, all, deep) {
			w.begin(2)
			w.text("INCR")
			w.key(counters, k)
		}
	}, func(w *wire, _ []uint64) error {
		for range w.keys {
			if _, err := w.line(':'); err != nil {
				return err
			}
		}
		return nil
	}}
}

func askMany(w *wire) {
	w.begin(1 + len(w.keys))
	w.text("MGET")
	for _, k := range w.keys {
		w.key("", k)
	}
}

func hearMany(w *wire) error {
	n, err := w.line('*')
	if err != nil || n != len(w.keys) {
		return wrongCount(n, len(w.keys), err)
	}
	for _, k := range w.keys {
		if err := w.isVal(k); err != nil {
			return err
		}
	}
	return nil
}

func getMany(n int) load {
	return load{"MGET", n, func(w *wire, all []uint64) {
		some(w, all, n)
		askMany(w)
	}, func(w *wire, _ []uint64) error { return hearMany(w) }}
}

func tellMany(w *wire) {
	w.begin(1 + 2*len(w.keys))
	w.text("MSET")
	for _, k := range w.keys {
		w.key("", k)
		w.val(k)
	}
}

func setMany(n int) load {
	return load{"MSET", n, func(w *wire, all []uint64) {
		some(w, all, n)
		tellMany(w)
	}, func(w *wire, _ []uint64) error { return w.ok() }}
}

// sorted is the name of the index at ours, and of a sorted set of all keys at others.
const sorted = "index"

func askRange(w *wire, from uint64, n string) {
	w.begin(7)
	w.text("ZRANGEBYLEX")
	w.text(sorted)
	w.key("[", from)
	w.text("+")
	w.text("LIMIT")
	w.text("0")
	w.text(n)
}

func hearRange(w *wire, all []uint64, from uint64, most int) error {
	at, _ := slices.BinarySearch(all, from)
	want := all[at:min(at+most, len(all))]
	n, err := w.line('*')
	if err != nil || n < len(want) || n > most { // behind the last key there may be counters
		return wrongCount(n, len(want), err)
	}
	for i := range n {
		if i >= len(want) {
			_, err = w.bulk()
		} else {
			err = w.isKey(want[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func rangeOf(n int) load {
	return load{"range", n, func(w *wire, all []uint64) { askRange(w, some(w, all, 1)[0], texts[n]) },
		func(w *wire, all []uint64) error { return hearRange(w, all, w.keys[0], n) }}
}

// texts are numbers of entries as clients write them.
var texts = map[int]string{100: "100", 1000: "1000"}

func mixed(n int) load {
	return load{"mixed", 3 * n, func(w *wire, all []uint64) {
		some(w, all, n)
		askMany(w)
		askRange(w, w.keys[0], texts[n])
		tellMany(w)
	}, func(w *wire, all []uint64) error {
		if err := hearMany(w); err != nil {
			return err
		}
		if err := hearRange(w, all, w.keys[0], n); err != nil {
			return err
		}
		return w.ok()
	}}
}
