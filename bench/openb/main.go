// Openb replays Alibaba's openb trace of GPU requests against the placement
// policies, by the protocol of the FGD paper (Weng et al., USENIX ATC 2023).
//
//	go run ./openb                              requests that never leave, up to 130 % of the cluster
//	go run ./openb -trace gpuspec33 -seeds 5    another variant of the trace
//	go run ./openb -churn 1.0 -seeds 5          requests that leave, at a load of 1.0
//
// Columns: how much more than the policy of the first line, seed by seed, with the
// standard error and in how many seeds; the GPUs of requests refused before 95 % of
// the cluster was asked for, per seed. A seed gives all policies the same requests. Times are of Place alone; what
// horizon learns meanwhile is a column of its own.
package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// published is allocated GPU in % at 130 % arrived, mean of ten seeds.
//
// Source: hkust-adsl/kubernetes-scheduler-simulator,
// experiments/analysis/expected_results/analysis_allo_discrete.csv (Fig. 9 of the paper).
var published = map[string]map[string]float64{
	"default":     {"random": 87.47, "bestfit": 93.08, "fgd": 95.39},
	"gpushare60":  {"random": 83.65, "bestfit": 89.36, "fgd": 91.40},
	"gpushare100": {"random": 79.44, "bestfit": 85.01, "fgd": 86.90},
	"gpuspec20":   {"random": 87.24, "bestfit": 93.30, "fgd": 94.84},
	"gpuspec33":   {"random": 86.46, "bestfit": 93.09, "fgd": 94.55},
	"multigpu20":  {"random": 88.69, "bestfit": 93.93, "fgd": 95.65},
	"multigpu50":  {"random": 90.27, "bestfit": 95.74, "fgd": 97.18},
}

// arrived is how much of the cluster's GPU is asked for when nothing leaves.
const arrived = 1.3

func main() {
	trace := flag.String("trace", "default", "variant of the trace: default, gpushare60, gpushare100, gpuspec20, gpuspec33, multigpu20 or multigpu50")
	seeds := flag.Int("seeds", 10, "how many seeds")
	from := flag.Int("from", 301, "the first seed; 42 to 49, and 101 to 104 with -churn, were used for tuning")
	policies := flag.String("policies", "random,firstfit,bestfit,fgd,horizon", "in the order to run")
	load := flag.Float64("churn", 0, "let requests leave, and ask for this much of the cluster; 0: none leaves")
	flag.Parse()
	if err := compare(*trace, *from, *seeds, strings.Split(*policies, ","), *load); err != nil {
		fmt.Fprintln(os.Stderr, "openb:", err)
		os.Exit(1)
	}
}

// compare runs each policy with each seed and prints a line per policy.
func compare(variant string, from, seeds int, policies []string, load float64) error {
	nodes, err := readNodes()
	if err != nil {
		return err
	}
	trace, err := readTrace(variant)
	if err != nil {
		return err
	}
	total := capacity(nodes)
	what := fmt.Sprintf("allocated GPU in %% when %.0f %% was asked for", 100*arrived)
	if load > 0 {
		what = fmt.Sprintf("served GPU time in %% of what was asked for, load %.2f", load)
	}
	fmt.Printf("%s, seeds %d to %d, %d nodes, %d GPUs: %s\n", variant, from, from+seeds-1, len(nodes), total/1000, what)
	fmt.Printf("%-10s %16s %10s %18s %15s %10s %10s %12s\n", "policy", "mean (sd)", "published", "more (se), wins", "early refusals", "mean us", "99 % us", "learning ms")
	var first []float64 // of the policy in the first line, by seed
	for _, name := range policies {
		var values, refusals []float64
		var decisions, learning []time.Duration
		for seed := from; seed < from+seeds; seed++ {
			p, err := makePolicy(name, nodes, trace, uint64(seed))
			if err != nil {
				return err
			}
			rng := rand.New(rand.NewPCG(uint64(seed), 1))
			o := outcome{}
			if load > 0 {
				o, err = churn(p, trace, total, load, rng)
			} else {
				o = fill(p, arrivals(trace, int(arrived*float64(total)), rng), total)
			}
			if err != nil {
				return err
			}
			values, refusals = append(values, o.value), append(refusals, o.refused)
			decisions, learning = append(decisions, o.decisions...), append(learning, o.learning...)
		}
		if first == nil {
			first = values
		}
		fmt.Printf("%-10s %16s %10s %18s %15s %10.1f %10.1f %12.1f\n", name, spread(values), publishedOf(variant, name, load), against(first, values),
			early(refusals, load), micro(meanTime(decisions)), micro(quantile(decisions, 0.99)), micro(meanTime(learning))/1000)
	}
	return nil
}

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// meanAndSD are of the values themselves (population), as the paper gives them.
func meanAndSD(values []float64) (mean, sd float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sd += (v - mean) * (v - mean) / float64(len(values))
	}
	return mean, math.Sqrt(sd)
}

func spread(values []float64) string {
	mean, sd := meanAndSD(values)
	return fmt.Sprintf("%.2f (%.2f)", mean, sd)
}

// against is how much values are above those of first, seed by seed, with the
// standard error and in how many seeds.
func against(first, values []float64) string {
	var more []float64
	wins := 0
	for i := range values {
		more = append(more, values[i]-first[i])
		if values[i] > first[i] {
			wins++
		}
	}
	mean, sd := meanAndSD(more)
	return fmt.Sprintf("%+.2f (%.2f), %d/%d", mean, sd/math.Sqrt(float64(max(1, len(more)-1))), wins, len(more))
}

func publishedOf(variant, policy string, load float64) string {
	if v, known := published[variant][policy]; known && load == 0 {
		return fmt.Sprintf("%.2f", v)
	}
	return "-"
}

// early is the mean of the GPUs refused early; where requests leave there is no such time.
func early(refused []float64, load float64) string {
	if load > 0 {
		return "-"
	}
	mean, _ := meanAndSD(refused)
	return fmt.Sprintf("%.1f", mean)
}
