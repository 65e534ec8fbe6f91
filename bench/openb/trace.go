package main

import (
	"compress/gzip"
	"embed"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"berth/placement"
)

//go:embed data/*.csv.gz
var data embed.FS

// table reads a file of data and returns its rows by column name.
func table(name string) ([]map[string]string, error) {
	f, err := data.Open("data/" + name + ".csv.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	plain, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	lines, err := csv.NewReader(plain).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, column := range lines[0] {
			row[column] = line[i]
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// readNodes reads the cluster, with nothing running on it.
func readNodes() (nodes []placement.Node, err error) {
	rows, err := table("openb_node_list_gpu_node")
	for _, row := range rows {
		n := numbers(row, &err, "cpu_milli", "memory_mib", "gpu")
		nodes = append(nodes, placement.EmptyNode(row["sn"], row["model"], n[0], n[1], n[2]))
	}
	return nodes, err
}

// readTrace reads the requests of a variant of the trace, in its order.
func readTrace(variant string) (trace []placement.Request, err error) {
	rows, err := table("openb_pod_list_" + variant)
	for _, row := range rows {
		n := numbers(row, &err, "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
		r := placement.Request{MilliCPU: n[0], MemoryMiB: n[1], GPUs: n[2], MilliGPU: n[3]}
		if spec := row["gpu_spec"]; spec != "" {
			r.Models = strings.Split(spec, "|")
		}
		trace = append(trace, r)
	}
	return trace, err
}

// numbers reads columns of a row; the first that is no number goes to err.
func numbers(row map[string]string, err *error, columns ...string) (out []int) {
	for _, column := range columns {
		n, bad := strconv.Atoi(row[column])
		if bad != nil && *err == nil {
			*err = fmt.Errorf("column %s: %w", column, bad)
		}
		out = append(out, n)
	}
	return out
}

// capacity is the milli-GPU of all nodes.
func capacity(nodes []placement.Node) (milliGPU int) {
	for _, n := range nodes {
		milliGPU += len(n.FreeMilliGPU) * placement.Milli
	}
	return milliGPU
}

// arrivals is the trace shuffled, then requests drawn from it, until they ask for
// so much GPU: the protocol of the FGD paper.
func arrivals(trace []placement.Request, milliGPU int, rng *rand.Rand) []placement.Request {
	out := slices.Clone(trace)
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	asked := 0
	for i := 0; ; i++ {
		if i == len(out) {
			out = append(out, trace[rng.IntN(len(trace))])
		}
		if asked += out[i].TotalMilliGPU(); asked >= milliGPU {
			return out[:i+1]
		}
	}
}
