module github.com/pagewire/pagewire

go 1.26
