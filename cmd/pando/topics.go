package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

const exitCodesText = `Exit codes:

  0    all went well
  1    something failed: a file, the memory, a device; stderr says what to do
  2    the command line makes no sense; --help shows how it is meant
  3    ` + "`pando get`" + ` did not find a key that was given as an argument, or, with
       --missing fail, a key of the file
  130  interrupted with ^C; nothing half-written is left behind`

const formatsText = `What commands read (--format, else by extension, else by content; - is stdin):

  csv, tsv       text in columns. What separates fields is found by looking
                 (--delimiter sets it); the first line has the names, unless
                 there is one column of numbers (--header, --no-header)
  lines          one value a line, as it stands, quotes and all: what a text of
                 one column is whose name does not end in .csv or .tsv
  jsonl          one JSON object a line; place.lat is the field lat of an object
                 place
  parquet        Apache Parquet
  arrow          Apache Arrow IPC, file or stream
  sosd32, sosd64 a count of 8 bytes, then little-endian unsigned keys, as the
                 SOSD benchmark has its data sets
  u32, u64, i32, i64
                 little-endian numbers and nothing else

Any of them may be packed with gzip, zstd, bzip2 or xz, or be the only file in a
zip archive. An empty field of a CSV is no number; --null NA makes other texts
stand for nothing, too, and --no-quotes makes quotes text.

What commands write (--format, else by the extension of -o; text otherwise):

  text           columns between tabs, for people and for cut
  csv, tsv       with names; missing values are empty
  jsonl          with names; missing values are null
  arrow          an Arrow IPC stream
  parquet        Apache Parquet; strings that are not UTF-8 are BINARY

-o x.csv.gz and x.csv.zst compress. A file that is there is replaced only with
--force, and one that the command reads never, whatever name or link it has.

join writes the columns of its input as they
are: text byte by byte, rows of JSON whole, and columns of Parquet and Arrow with
their types, also from one of these into the other; lists and other nested
columns become JSON there. Columns of CSV get types in Parquet and Arrow.

` + "`pando gen`" + ` also writes sosd32, sosd64, u32, u64, i32 and i64.`

const typesText = `Keys and values are of seven types:

  int64, uint64, int32, uint32, float64, float32, string

Numbers may also be dates, times or decimals, and strings booleans, UUIDs or bytes
that are no text:

  date, timestamp[s|ms|us|ns], timestamp[us,utc], time[us], decimal[2]
  bool, uuid, binary

Parquet and Arrow files say which are, and --type COL=date does for text, where only
dates such as 2020-01-31 are found without it. The file
remembers it, so that dates are asked for and written as 2020-01-31; to Go they
are int32 (days since 1970) and int64, and UUIDs strings of 16 bytes.

A value may also be missing altogether: build without --value makes an index
of keys alone. Types of text are inferred from the first rows (date, int64, else
uint64, float64, string) and shown; --type COL=TYPE sets one. Narrow types make
small and fast indexes: uint32 keys with uint32 values take half the memory of
64-bit ones. Keys and values of the same width are fastest.

In Go, the same file is opened with the same types:

  ix, err := pando.Open[uint64, float64]("prices.pando")`

// topics returns the help pages that are not commands.
func topics() []*cobra.Command {
	topic := func(name, short, long string) *cobra.Command {
		return &cobra.Command{Use: name, Short: short, Long: long}
	}
	return []*cobra.Command{
		topic("exit-codes", "What the exit codes mean", exitCodesText),
		topic("formats", "Which files can be read and written", formatsText),
		topic("types", "Types of keys and values", typesText),
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  takes(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "pando version %s\n", version())
			return err
		},
	}
}

// version describes what was built, as far as the build knows.
func version() string {
	v := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return fmt.Sprintf("%s, %s, %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
