module gateway-go

go 1.24
