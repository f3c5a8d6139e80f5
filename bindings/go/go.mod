module kvasir

go 1.19
