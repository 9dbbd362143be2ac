module citius.test/rpcclient

go 1.22

require github.com/ugorji/go/codec v1.2.12
