package money

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	usd := currency(t, "USD")
	for in, want := range map[string]Amount{
		"575.67":               575_670_000, // case A23: a float makes this 575.66
		"0":                    0,
		"5":                    5_000_000,
		"  25.00 ":             25_000_000,
		"$5":                   5_000_000,
		"$ 5":                  5_000_000,
		"usd 5":                5_000_000,
		"5 USD":                5_000_000,
		"1,000.00":             1_000_000_000,
		"1,234,567.89":         1_234_567_890_000,
		"0.000001":             1,
		".5":                   500_000,
		"1.10000000000":        1_100_000,
		"0005":                 5_000_000,
		"1000000000000":        MaxAmount,
		"1,000,000,000,000.00": MaxAmount,
	} {
		if got, err := usd.Parse(in); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", in, got, err, want)
		}
	}
	for in, want := range map[string]error{
		"":                           ErrSyntax,
		"   ":                        ErrSyntax,
		"$":                          ErrSyntax,
		"USD":                        ErrSyntax,
		".":                          ErrSyntax,
		"5.":                         ErrSyntax,
		"1,50":                       ErrSyntax, // a decimal comma is not guessed at
		"1.000,50":                   ErrSyntax,
		"1,0000":                     ErrSyntax,
		",100":                       ErrSyntax,
		"1000,000":                   ErrSyntax,
		"1 000":                      ErrSyntax,
		"+5":                         ErrSyntax,
		"--5":                        ErrSyntax,
		"5-":                         ErrSyntax,
		"1e3":                        ErrSyntax,
		"0x10":                       ErrSyntax,
		"NaN":                        ErrSyntax,
		"Inf":                        ErrSyntax,
		"€5":                         ErrSyntax,
		"5 EUR":                      ErrSyntax,
		"٥":                          ErrSyntax, // digits, but not ours
		"5\x00":                      ErrSyntax,
		"1.2.3":                      ErrSyntax,
		strings.Repeat("9", 41):      ErrSyntax,
		"-5":                         ErrNegative,
		"$-5":                        ErrNegative,
		"-0.01":                      ErrNegative,
		"0.0000001":                  ErrTooPrecise,
		"1.1234567":                  ErrTooPrecise,
		"1000000000000.000001":       ErrTooLarge,
		"1000000000001":              ErrTooLarge,
		"9227000000000":              ErrTooLarge, // times 10⁶ it is past an int64
		"9999999999999.999999":       ErrTooLarge,
		"9223372036854775808":        ErrTooLarge,
		"99999999999999999999999999": ErrTooLarge,
	} {
		if got, err := usd.Parse(in); !errors.Is(err, want) {
			t.Errorf("%q: %d, %v; want %v", in, got, err, want)
		}
	}
}

func TestParseMinor(t *testing.T) {
	for _, tc := range []struct {
		code, in string
		want     Amount
		err      error
	}{
		{"USD", "10.05", 10_050_000, nil},
		{"USD", "10.005", 0, ErrTooPrecise},
		{"USD", "10.0500", 10_050_000, nil},
		{"JPY", "150", 150_000_000, nil},
		{"JPY", "¥150", 150_000_000, nil},
		{"JPY", "150.00", 150_000_000, nil},
		{"JPY", "150.5", 0, ErrTooPrecise},
		{"KWD", "0.612", 612_000, nil},
		{"KWD", "KWD 0.612", 612_000, nil},
		{"KWD", "0.6125", 0, ErrTooPrecise},
	} {
		got, err := currency(t, tc.code).ParseMinor(tc.in)
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s %q: %d, %v", tc.code, tc.in, got, err)
		}
	}
}

func TestParseRate(t *testing.T) {
	if r, err := ParseRate(" 1.99 "); r != 1_990_000 || err != nil {
		t.Errorf("%d, %v", r, err)
	}
	for in, want := range map[string]error{"1.9999999": ErrTooPrecise, "-1": ErrNegative, "free": ErrSyntax, "2000000000000": ErrTooLarge} {
		if r, err := ParseRate(in); !errors.Is(err, want) {
			t.Errorf("%q: %d, %v", in, r, err)
		}
	}
}

func TestFormat(t *testing.T) {
	for _, tc := range []struct {
		code                 string
		a                    Amount
		format, exact, small string
	}{
		{"USD", 0, "$0.00", "$0.00", "$0.00"},
		{"USD", 1_234_500_000, "$1,234.50", "$1,234.50", "$1,234.50"},
		{"USD", -300_000, "-$0.30", "-$0.30", "-$0.30"},
		{"USD", 453, "$0.00", "$0.000453", "< $0.01"},
		{"USD", -453, "$0.00", "-$0.000453", "$0.00"},
		{"USD", 9_999, "$0.00", "$0.009999", "< $0.01"},
		{"USD", 10_000, "$0.01", "$0.01", "$0.01"},
		{"USD", 1_999_999, "$1.99", "$1.999999", "$1.99"},
		{"USD", -1_999_999, "-$1.99", "-$1.999999", "-$1.99"},
		{"USD", 1_500, "$0.00", "$0.0015", "< $0.01"},
		{"USD", MaxAmount, "$1,000,000,000,000.00", "$1,000,000,000,000.00", "$1,000,000,000,000.00"},
		{"USD", math.MinInt64, "-$9,223,372,036,854.77", "-$9,223,372,036,854.775808", "-$9,223,372,036,854.77"},
		{"JPY", 80_000_000, "¥80", "¥80", "¥80"},
		{"JPY", 2_541_666, "¥2", "¥2.541666", "¥2"},
		{"JPY", 999_999, "¥0", "¥0.999999", "< ¥1"},
		{"KWD", 10_370, "KWD 0.010", "KWD 0.01037", "KWD 0.010"},
		{"KWD", -1_234_567_000, "-KWD 1,234.567", "-KWD 1,234.567", "-KWD 1,234.567"},
		{"EUR", 999_990_000, "€999.99", "€999.99", "€999.99"},
	} {
		c := currency(t, tc.code)
		if got := c.Format(tc.a); got != tc.format {
			t.Errorf("%s %d: Format %q, want %q", tc.code, tc.a, got, tc.format)
		}
		if got := c.FormatExact(tc.a); got != tc.exact {
			t.Errorf("%s %d: FormatExact %q, want %q", tc.code, tc.a, got, tc.exact)
		}
		if got := c.FormatSmall(tc.a); got != tc.small {
			t.Errorf("%s %d: FormatSmall %q, want %q", tc.code, tc.a, got, tc.small)
		}
	}
}

func TestFormatRates(t *testing.T) {
	for _, tc := range []struct{ code, price, second, hour, month string }{
		{"USD", "1.99", "$0.000553 /s", "$1.99 /h", "$1,452.70 /month"},
		{"USD", "0.39", "$0.000108 /s", "$0.39 /h", "$284.70 /month"},
		{"USD", "3.29", "$0.000914 /s", "$3.29 /h", "$2,401.70 /month"},
		{"USD", "0.0075", "$0.000002 /s", "$0.0075 /h", "$5.47 /month"},
		{"USD", "0.0018", "$0.000001 /s", "$0.0018 /h", "$1.31 /month"},
		{"USD", "0.001799", "< $0.000001 /s", "$0.001799 /h", "$1.31 /month"},
		{"USD", "0", "$0.000000 /s", "$0.00 /h", "$0.00 /month"},
		{"JPY", "150", "¥0.041667 /s", "¥150 /h", "¥109,500 /month"},
		{"KWD", "0.612", "KWD 0.000170 /s", "KWD 0.612 /h", "KWD 446.760 /month"},
	} {
		c, r := currency(t, tc.code), rate(t, tc.price)
		if got := []string{c.FormatRateSecond(r), c.FormatRateHour(r), c.FormatMonth(r)}; got[0] != tc.second || got[1] != tc.hour || got[2] != tc.month {
			t.Errorf("%s %s: %q, want %q %q %q", tc.code, tc.price, got, tc.second, tc.hour, tc.month)
		}
	}
}

// What is written exactly reads back as the same amount, in every currency.
func TestExactTextReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(Currencies()).Draw(t, "currency")
		a := Amount(rapid.Int64Range(0, int64(MaxAmount)).Draw(t, "amount"))
		if got, err := c.Parse(c.FormatExact(a)); err != nil || got != a {
			t.Fatalf("%s reads as %d, %v; want %d", c.FormatExact(a), got, err, a)
		}
		if got, err := c.ParseMinor(c.Format(a)); err != nil || got != c.FloorMinor(a) {
			t.Fatalf("%s reads as %d, %v; want %d", c.Format(a), got, err, c.FloorMinor(a))
		}
	})
}

// Case A23: sums that floats get wrong.
func TestSumsAreExact(t *testing.T) {
	usd := currency(t, "USD")
	for want, terms := range map[string][]string{
		"1.72": {"0.25", "0.25", "0.25", "7", "10", "-16.03"},
		"0":    {"324.71", "181.51", "-506.22"},
	} {
		var sum Amount
		for _, term := range terms {
			text, negative := strings.CutPrefix(term, "-")
			a, err := usd.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if negative {
				a = -a
			}
			sum += a
		}
		if w, _ := usd.Parse(want); sum != w {
			t.Errorf("%v is %s, want %s", terms, usd.FormatExact(sum), want)
		}
	}
	var million Amount
	one, _ := usd.Parse("0.000001")
	for range 1_000_000 {
		million += one
	}
	if million != Unit {
		t.Errorf("a million debits of a micro-dollar are %d", million)
	}
	if minor, err := usd.ToMinor(575_670_000); minor != 57567 || err != nil {
		t.Errorf("575.67 is %d cents, %v", minor, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"575.67", "1,000.00", "$5", "5 USD", "-1", "1,50", ".5", "5.", "1e9", "0.0000001", "999999999999999999999"} {
		f.Add("USD", s)
	}
	f.Add("JPY", "¥80")
	f.Add("KWD", "KWD 0.612")
	f.Fuzz(func(t *testing.T, code, s string) {
		c, err := LookupCurrency(code)
		if err != nil {
			return
		}
		a, err := c.Parse(s)
		if err != nil {
			if !errors.Is(err, ErrSyntax) && !errors.Is(err, ErrTooPrecise) && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrNegative) {
				t.Errorf("%q: untyped error %v", s, err)
			}
			return
		}
		if a < 0 || a > MaxAmount {
			t.Errorf("%q is %d", s, a)
		}
		if again, err := c.Parse(c.FormatExact(a)); err != nil || again != a {
			t.Errorf("%q is %d, written %s, read %d, %v", s, a, c.FormatExact(a), again, err)
		}
		if minor, err := c.ParseMinor(s); err == nil && (minor != a || minor%c.Minor() != 0) {
			t.Errorf("%q: ParseMinor %d, Parse %d", s, minor, a)
		}
	})
}
