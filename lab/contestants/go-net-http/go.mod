module go-net-http

go 1.24

require lab.example/work v0.0.0

require (
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/tinylib/msgp v1.6.5 // indirect
)

replace lab.example/work => ../shared/go
