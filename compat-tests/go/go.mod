module ottla/compat/go

go 1.23

require (
	github.com/twmb/franz-go v1.19.5
	github.com/twmb/franz-go/pkg/kadm v1.16.1
	github.com/twmb/franz-go/pkg/kmsg v1.11.2
)
