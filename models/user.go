package models

// User is a person who signs in. Email is stored lower-cased and unique.
type User struct {
	ID           UserID `gorm:"primaryKey"`
	Email        string
	Name         string
	PasswordHash string // argon2id, encoded with its parameters
	Operator     bool
	CreatedAt    Instant `gorm:"autoCreateTime:false"`
}

// Session is one signed-in browser. Only the hash of its secret is kept;
// revoking deletes the row, and the next request with it is anonymous.
type Session struct {
	IDHash    string `gorm:"primaryKey"` // hex sha256 of the cookie's value
	UserID    UserID
	AccountID AccountID // the account acted for
	UserAgent string
	Address   string
	CreatedAt Instant `gorm:"autoCreateTime:false"`
	SeenAt    Instant
	ExpiresAt Instant
}

// Token is an API token. Only its hash is kept.
type Token struct {
	ID         TokenID `gorm:"primaryKey"`
	UserID     UserID
	AccountID  AccountID
	Name       string
	Hash       string  // hex sha256
	CreatedAt  Instant `gorm:"autoCreateTime:false"`
	LastUsedAt Instant
}

// Role is what a member may do in an account.
type Role string

// The roles, strongest first.
const (
	Owner     Role = "owner"
	Billing   Role = "billing"
	Developer Role = "developer"
	Viewer    Role = "viewer"
)

// Account is who pays.
type Account struct {
	ID             AccountID `gorm:"primaryKey"`
	Name           string
	Currency       string  // ISO 4217, upper case
	TimeZone       string  // IANA name; decides where invoice months are cut
	StripeCustomer string  // empty until the first top-up
	Frozen         bool    // a dispute is open: nothing new starts
	CreatedAt      Instant `gorm:"autoCreateTime:false"`
}

// Member links a user to an account.
type Member struct {
	AccountID AccountID `gorm:"primaryKey"`
	UserID    UserID    `gorm:"primaryKey"`
	Role      Role
}
