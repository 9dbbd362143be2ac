module calls-go

go 1.26.0
