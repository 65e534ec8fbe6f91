package web

import "strconv"

// invoiceTopics: a month to date moves with the wallet, a closed document never.
func invoiceTopics(v InvoiceView) string {
	if v.PDFHref == "" {
		return "wallet"
	}
	return ""
}

func spanCount(n int) string {
	if n == 1 {
		return "1 usage span"
	}
	return strconv.Itoa(n) + " usage spans"
}
