// Command caddy is Caddy with the modules of its HTTP server and of its files alone.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"
)

func main() { caddycmd.Main() }
