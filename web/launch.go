package web

// Helps under the launch form's fields.
const (
	nameHelp    = "Lower case, digits and dashes. Left empty, one is made up."
	envHelp     = "One NAME=value per line."
	startupHelp = "Runs once after the instance is up."
)
