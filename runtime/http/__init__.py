"""The HTTP server: reads HTTP/1.1 with llhttp and drives a Tornado application through Tornado's delegate interfaces.

It knows nothing of Latchkey. `runtime.http.server.FrontServer` takes the place of `tornado.httpserver.HTTPServer`.
"""
