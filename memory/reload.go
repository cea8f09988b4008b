package memory

// ReloadReport says what a running node has read again.
type ReloadReport struct {
	// File is the configuration file, if the node has one.
	File string `json:"file,omitempty"`
	// Settings are those that differ from what was in effect, without secrets.
	Settings []ReloadedSetting `json:"settings"`
	// Files are the certificates and the token, each with what became of it.
	Files []ReloadedFile `json:"files"`
}

// ReloadedSetting is a setting that has changed.
type ReloadedSetting struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
	// Applied says that it is in effect now; else it is with the next start.
	Applied bool `json:"applied"`
}

// States of a ReloadedFile.
const (
	FileSame    = "same"    // it says what it said before
	FileRead    = "read"    // what it says counts from now on
	FileRefused = "refused" // it cannot be used, and what counted before still does
)

// ReloadedFile is a file, or files that belong together.
type ReloadedFile struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"`
}

// WrittenFile is a file that was written on the caller's machine.
type WrittenFile struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}
