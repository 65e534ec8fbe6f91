package web

// Helps under the launch form's fields.
const (
	nameHelp    = "Lower case, digits and dashes. Left empty, one is made up."
	envHelp     = "One NAME=value per line."
	startupHelp = "Runs once as soon as the instance is up, and is paid like the rest."
)

// choice parts the chosen SKU, nil for none, from the others.
func (v LaunchView) choice() (chosen *SKUChoice, others []SKUChoice) {
	for i, s := range v.SKUs {
		if s.Selected && chosen == nil {
			chosen = &v.SKUs[i]
		} else {
			others = append(others, s)
		}
	}
	return chosen, others
}

func othersLabel(n int) string {
	if n == 1 {
		return "One other GPU or slice"
	}
	return count(n) + " other GPUs and slices"
}
