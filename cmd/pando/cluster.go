package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pando-index/pando/pandocluster"
	"github.com/spf13/cobra"
)

const clusterLong = `A cluster is one index on several machines: each key is on three of them, and one that
fails takes nothing with it. Any node takes any command of a client. pando serve DIR
--node NAME starts a node; the first one makes the cluster, others --join it.

Nodes know each other by certificates. The first node makes an authority for the cluster
in --certs, and nodes that find its key there make their own; for another machine
pando cluster add makes one, to be copied there with ca.crt.

docs/cluster.md has the whole of it.`

const clusterExample = `  pando serve a --node a
  pando serve b --node b --listen 127.0.0.1:6381 --http off --join 127.0.0.1:16379
  pando serve c --node c --listen 127.0.0.1:6382 --http off --join 127.0.0.1:16379
  pando cluster status
  pando cluster drain b`

// usualNodes is where a node is for other nodes that was told nothing else.
const usualNodes = "127.0.0.1:16379"

// steerFlags are where a cluster is, and by what it knows who steers it.
type steerFlags struct {
	at, certs string
	wait      time.Duration
}

// newCluster makes the command cluster, and those below it.
func newCluster() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cluster COMMAND",
		Short:   "Steer an index on several machines: status, split, move, drain, ...",
		Long:    clusterLong,
		Example: clusterExample,
		Args:    cobra.ArbitraryArgs,
		RunE:    runRoot,

		SuggestionsMinimumDistance: 2,
	}
	for _, c := range []*cobra.Command{
		newClusterInit(), newClusterAdd(), newClusterRotate(), newClusterStatus(), newClusterSplit(), newClusterMove(), newClusterDrain(), newClusterRemove(),
		newClusterBackup(), newClusterRestore(),
	} {
		addTo(cmd, c)
	}
	return cmd
}

const certsFlag = "`FOLDER` of certificates"

func newClusterInit() *cobra.Command {
	var certs string
	cmd := &cobra.Command{
		Use:     "init [NODE...] [flags]",
		Short:   "Make the authority of a new cluster, and certificates of nodes",
		Example: "  pando cluster init a b c",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, nodes []string) error {
			id, err := pandocluster.MakeAuthority(certs)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s has an authority already: pando cluster add makes certificates of nodes", certs)
			}
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "cluster %s: its authority is in %s; keep ca.key to yourself\n", id, certs); err != nil {
				return err
			}
			return issue(cmd, certs, nodes)
		},
	}
	cmd.Flags().StringVar(&certs, "certs", "certs", certsFlag)
	return cmd
}

func newClusterAdd() *cobra.Command {
	var certs string
	cmd := &cobra.Command{
		Use:     "add NODE... [flags]",
		Short:   "Make certificates of nodes that are to join, or new ones",
		Example: "  pando cluster add d\n  scp certs/ca.crt certs/d.* other:certs/",
		Args:    takes(1, -1, "the name of a node"),
		RunE:    func(cmd *cobra.Command, nodes []string) error { return issue(cmd, certs, nodes) },
	}
	cmd.Flags().StringVar(&certs, "certs", "certs", certsFlag)
	return cmd
}

func newClusterRotate() *cobra.Command {
	var certs string
	var end bool
	cmd := &cobra.Command{
		Use:   "rotate [flags]",
		Short: "Have another authority take the place of the cluster's",
		Example: "  pando cluster rotate          # then copy ca.crt to all nodes\n" +
			"  pando cluster add a b c       # then copy to each node its two files\n" +
			"  pando cluster rotate --end    # then copy ca.crt to all nodes",
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			do, then := pandocluster.RotateAuthority, "%[1]s has both authorities: copy %[1]s to all nodes, then make their certificates anew by pando cluster add, then pando cluster rotate --end\n"
			if end {
				do, then = pandocluster.RetireAuthority, "%s has the new authority alone: copy it to all nodes\n"
			}
			if err := do(certs); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), then, filepath.Join(certs, "ca.crt"))
			return err
		},
	}
	cmd.Flags().StringVar(&certs, "certs", "certs", certsFlag)
	cmd.Flags().BoolVar(&end, "end", false, "the old authority goes: all nodes have certificates of the new one")
	return cmd
}

func issue(cmd *cobra.Command, certs string, nodes []string) error {
	for _, n := range nodes {
		if err := pandocluster.IssueCertificate(certs, n); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: needs ca.crt, %s.crt and %s.key of %s\n", n, n, n, certs); err != nil {
			return err
		}
	}
	return nil
}

// steering makes a command that steers a cluster.
func steering(cmd *cobra.Command, do func(ctx context.Context, cmd *cobra.Command, s *pandocluster.Steering, args []string) error) *cobra.Command {
	f := &steerFlags{}
	cmd.Flags().StringVar(&f.at, "at", usualNodes, "`ADDRESS` of any node, for other nodes")
	cmd.Flags().StringVar(&f.certs, "certs", "certs", certsFlag)
	cmd.Flags().DurationVar(&f.wait, "timeout", time.Minute, "`TIME` after which it is given up")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		who, err := f.identity()
		if err != nil {
			return err
		}
		t, err := pandocluster.OpenTLS(f.certs, who, nil)
		if err != nil {
			return err
		}
		defer t.Close()
		ctx, stop := context.WithTimeout(cmd.Context(), f.wait)
		defer stop()
		return do(ctx, cmd, t.Steer(f.at), args)
	}
	return cmd
}

// admin is the name in the certificate of who steers.
const admin = "admin"

// identity returns whose certificate is shown: one for steering where the authority is at hand, else that of a node.
func (f *steerFlags) identity() (string, error) {
	if err := pandocluster.EnsureCertificate(f.certs, admin, false); err != nil {
		return "", err
	}
	keys, err := filepath.Glob(filepath.Join(f.certs, "*.key"))
	if err != nil {
		return "", err
	}
	who := ""
	for _, k := range keys {
		switch name := strings.TrimSuffix(filepath.Base(k), ".key"); name {
		case admin:
			return admin, nil
		case "ca":
		default:
			who = name
		}
	}
	if who == "" {
		return "", usagef("--certs %s has no certificate of the cluster: %w", f.certs, os.ErrNotExist)
	}
	return who, nil
}

func newClusterStatus() *cobra.Command {
	return steering(&cobra.Command{
		Use:     "status [flags]",
		Short:   "Show nodes, and what each has",
		Example: "  pando cluster status --at 10.0.0.1:16379",
		Args:    takes(0, 0, ""),
	}, func(ctx context.Context, cmd *cobra.Command, s *pandocluster.Steering, _ []string) error {
		p, err := s.Picture(ctx)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		names := map[string]string{}
		fmt.Fprintln(w, "node\taddress\tstate\treplicas\tleads\t")
		for _, n := range p.Nodes {
			names[n.ID] = n.Name
			replicas, leads := has(&p, n.ID)
			if n.Gone && replicas == 0 {
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t\n", n.Name, n.Addr, stateOf(&n), replicas, leads)
		}
		fmt.Fprintln(w, "\nrange\tfrom\tkeys\tbytes\treplicas\tleader\t")
		for _, r := range p.Ranges {
			var on []string
			for _, x := range r.Replicas {
				if name := names[x.Node]; x.Voter {
					on = append(on, name)
				} else {
					on = append(on, name+" (on its way)")
				}
			}
			from := strconv.Quote(r.Lo)
			if r.ID == 0 {
				from = "the map"
			}
			fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\t%s\t\n", r.ID, from, r.Keys, binary(r.Bytes), strings.Join(on, " "), names[r.Leader])
		}
		return w.Flush()
	})
}

func stateOf(n *pandocluster.NodeInfo) string {
	switch {
	case n.Gone:
		return "removed"
	case n.Silent > 5*time.Second:
		return "silent for " + n.Silent.Round(time.Second).String()
	case n.Draining:
		return "draining"
	}
	return "up"
}

// has returns how many replicas a node has, and how many ranges it leads.
func has(p *pandocluster.Picture, id string) (replicas, leads int) {
	for _, r := range p.Ranges {
		for _, x := range r.Replicas {
			if x.Node == id {
				replicas++
			}
		}
		if r.Leader == id {
			leads++
		}
	}
	return replicas, leads
}

func newClusterSplit() *cobra.Command {
	return steering(&cobra.Command{
		Use:     "split KEY [flags]",
		Short:   "Make a range of its own of the keys from one on",
		Example: "  pando cluster split m",
		Args:    takes(1, 1, "a key"),
	}, func(ctx context.Context, _ *cobra.Command, s *pandocluster.Steering, args []string) error {
		if args[0] == "" {
			return usagef("all keys are from the empty one on")
		}
		return s.Do(ctx, pandocluster.Step{Kind: pandocluster.Split, Key: args[0]})
	})
}

// nodeOf returns the node that has a name, or an ID.
func nodeOf(p *pandocluster.Picture, name string) (*pandocluster.NodeInfo, error) {
	var found *pandocluster.NodeInfo
	for i := range p.Nodes {
		switch n := &p.Nodes[i]; {
		case n.ID == name:
			return n, nil
		case n.Name != name || found != nil && n.Gone:
		case found != nil && !found.Gone:
			return nil, usagef("two nodes are called %s: take %s or %s", name, found.ID, n.ID)
		default:
			found = n
		}
	}
	if found == nil {
		return nil, fmt.Errorf("no node is called %s: %w", plain(name), errNotFound)
	}
	return found, nil
}

func newClusterMove() *cobra.Command {
	return steering(&cobra.Command{
		Use:     "move RANGE FROM TO [flags]",
		Short:   "Move a replica of a range from a node to another one",
		Example: "  pando cluster move 7 a d",
		Args:    takes(3, 3, "the number of a range and two nodes"),
	}, func(ctx context.Context, _ *cobra.Command, s *pandocluster.Steering, args []string) error {
		id, err := strconv.ParseUint(args[0], 10, 64)
		if err != nil {
			return usagef("%q is no number of a range", plain(args[0]))
		}
		return move(ctx, s, id, args[1], args[2])
	})
}

// move gives a node a replica, first without a vote and then with one, and takes another one's.
func move(ctx context.Context, s *pandocluster.Steering, id uint64, from, to string) error {
	p, err := s.Picture(ctx)
	if err != nil {
		return err
	}
	a, err := nodeOf(&p, from)
	if err != nil {
		return err
	}
	b, err := nodeOf(&p, to)
	if err != nil {
		return err
	}
	r := rangeOf(&p, id)
	if r == nil {
		return fmt.Errorf("there is no range %d: %w", id, errNotFound)
	}
	if !on(r, a.ID) || on(r, b.ID) {
		return usagef("range %d has to have a replica on %s, and none on %s", id, from, to)
	}
	votes := len(r.Replicas)
	for _, k := range []pandocluster.StepKind{pandocluster.AddReplica, pandocluster.Promote} {
		if err := s.Do(ctx, pandocluster.Step{Kind: k, Range: id, Node: b.ID}); err != nil {
			return err
		}
	}
	// The planner may have taken one that is too many itself.
	if p, err = s.Picture(ctx); err != nil {
		return err
	}
	if r = rangeOf(&p, id); r != nil && on(r, a.ID) && len(r.Replicas) > votes {
		return s.Do(ctx, pandocluster.Step{Kind: pandocluster.RemoveReplica, Range: id, Node: a.ID})
	}
	return nil
}

func rangeOf(p *pandocluster.Picture, id uint64) *pandocluster.RangeInfo {
	for i := range p.Ranges {
		if p.Ranges[i].ID == id {
			return &p.Ranges[i]
		}
	}
	return nil
}

func on(r *pandocluster.RangeInfo, node string) bool {
	for _, x := range r.Replicas {
		if x.Node == node {
			return true
		}
	}
	return false
}

// pictured returns the picture of a cluster, and the node of a name in it.
func pictured(ctx context.Context, s *pandocluster.Steering, name string) (p pandocluster.Picture, n *pandocluster.NodeInfo, err error) {
	if p, err = s.Picture(ctx); err == nil {
		n, err = nodeOf(&p, name)
	}
	return p, n, err
}

func newClusterDrain() *cobra.Command {
	var back bool
	cmd := steering(&cobra.Command{
		Use:     "drain NODE [flags]",
		Short:   "Move all that a node has to others, and wait for it",
		Example: "  pando cluster drain b\n  pando cluster drain b --undo",
		Args:    takes(1, 1, "a node"),
	}, func(ctx context.Context, cmd *cobra.Command, s *pandocluster.Steering, args []string) error {
		p, n, err := pictured(ctx, s, args[0])
		if err != nil {
			return err
		}
		if back {
			return s.Do(ctx, pandocluster.Step{Kind: pandocluster.Undrain, Node: n.ID})
		}
		if err := s.Do(ctx, pandocluster.Step{Kind: pandocluster.Drain, Node: n.ID}); err != nil {
			return err
		}
		for {
			left, _ := has(&p, n.ID)
			if left == 0 {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s has nothing any more\n", n.Name)
				return err
			}
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("%s still has %d replicas, and goes on to give them away: the others need room for them, and be three: %w", n.Name, left, ctx.Err())
			}
			if p, err = s.Picture(ctx); err != nil {
				return err
			}
		}
	})
	cmd.Flags().BoolVar(&back, "undo", false, "let the node have something again")
	return cmd
}

func newClusterRemove() *cobra.Command {
	var lost bool
	cmd := steering(&cobra.Command{
		Use:     "remove NODE [flags]",
		Short:   "Forget a node that is drained, or lost: it never comes back",
		Example: "  pando cluster remove b\n  pando cluster remove c --lost",
		Args:    takes(1, 1, "a node"),
	}, func(ctx context.Context, _ *cobra.Command, s *pandocluster.Steering, args []string) error {
		p, n, err := pictured(ctx, s, args[0])
		if err != nil {
			return err
		}
		if left, _ := has(&p, n.ID); left > 0 && !lost {
			return usagef("%s has %d replicas: pando cluster drain moves them; --lost is for a node that does not come back", n.Name, left)
		}
		return s.Do(ctx, pandocluster.Step{Kind: pandocluster.Forget, Node: n.ID})
	})
	cmd.Flags().BoolVar(&lost, "lost", false, "also if it has something: it does not come back")
	return cmd
}

// copying makes a command that copies a cluster from or to a folder, which takes its time.
func copying(cmd *cobra.Command, what string, do func(ctx context.Context, s *pandocluster.Steering, f pandocluster.Files) (pandocluster.Backup, error)) *cobra.Command {
	steering(cmd, func(ctx context.Context, cmd *cobra.Command, s *pandocluster.Steering, args []string) error {
		b, err := do(ctx, s, pandocluster.FolderOf(args[0]))
		if err != nil {
			return err
		}
		keys, size := b.Size()
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s: %d keys in %d files, %s\n", plain(args[0]), what, keys, len(b.Ranges), binary(size))
		return err
	})
	wait := cmd.Flags().Lookup("timeout")
	wait.DefValue = (24 * time.Hour).String()
	_ = wait.Value.Set(wait.DefValue)
	return cmd
}

func newClusterBackup() *cobra.Command {
	return copying(&cobra.Command{
		Use:     "backup FOLDER [flags]",
		Short:   "Copy all keys and values to a folder, each range at one moment",
		Example: "  pando cluster backup /backups/monday\n  pando info /backups/monday/range-000001.pando",
		Args:    takes(1, 1, "a folder that is not there yet, or empty"),
	}, "is a backup", func(ctx context.Context, s *pandocluster.Steering, f pandocluster.Files) (pandocluster.Backup, error) {
		return s.Backup(ctx, f)
	})
}

func newClusterRestore() *cobra.Command {
	return copying(&cobra.Command{
		Use:     "restore FOLDER [flags]",
		Short:   "Copy a backup into a cluster without keys, of any size",
		Example: "  pando cluster restore /backups/monday",
		Args:    takes(1, 1, "the folder of a backup"),
	}, "is restored", func(ctx context.Context, s *pandocluster.Steering, f pandocluster.Files) (pandocluster.Backup, error) {
		return s.Restore(ctx, f)
	})
}
