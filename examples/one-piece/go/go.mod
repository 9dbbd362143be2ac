module onepiece.example

go 1.24
