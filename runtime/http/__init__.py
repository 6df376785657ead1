"""The HTTP server: reads HTTP/1.1 with llhttp and drives a Tornado application through Tornado's delegate interfaces.

The package imports nothing of Latchkey. `runtime.http.server.HttpServer` replaces `tornado.httpserver.HTTPServer`.
"""
