package server

import "testing"

func TestPlainText(t *testing.T) {
	for raw, want := range map[string]string{
		"plain\nlines\n":                            "plain\nlines\n",
		"\x1b[31;1mred\x1b[0m and \x1b[Ktext":       "red and text",
		"\x1b]0;a title\x07after":                   "after",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\":  "link",
		"\x1b(Bdone\x1b=":                           "done",
		" 10 %\r 50 %\r100 %\r\nnext\r\n":           "100 %\nnext\n",
		"bad \xff utf-8, NUL \x00 and a bell \x07.": "bad \uFFFD utf-8, NUL  and a bell .",
	} {
		if got := plainText([]byte(raw)); got != want {
			t.Errorf("%q became %q, want %q", raw, got, want)
		}
	}
}
