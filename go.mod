module github.com/pando-index/pando

go 1.25
