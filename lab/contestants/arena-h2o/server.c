/* HttpArena's profiles of connections and files on libh2o, in C: server PORT WORKERS FOLDER [CERT KEY]
 *
 * HTTP/1.1 and HTTP/2 by prior knowledge in clear text; over TLS whichever ALPN chooses. One process with one
 * event loop for each worker.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define H2O_USE_LIBUV 0
#include <h2o.h>
#include <h2o/http1.h>
#include <h2o/http2.h>

static h2o_globalconf_t config;
static h2o_context_t context;
static h2o_accept_ctx_t accepting;

static int text(h2o_req_t *req, const char *body, size_t length)
{
    req->res.status = 200;
    req->res.reason = "OK";
    req->res.content_length = length;
    h2o_add_header(&req->pool, &req->res.headers, H2O_TOKEN_CONTENT_TYPE, NULL, H2O_STRLIT("text/plain"));
    h2o_send_inline(req, body, length);
    return 0;
}

/* The number behind `name` in a query. */
static long parameter(h2o_req_t *req, const char *name)
{
    if (req->query_at == SIZE_MAX)
        return 0;
    const char *at = req->path.base + req->query_at, *end = req->path.base + req->path.len;
    while (at < end && *at != ' ') {
        ++at; /* ? or & */
        if (*at == *name && at[1] == '=')
            return strtol(at + 2, NULL, 10);
        while (at < end && *at != '&')
            ++at;
    }
    return 0;
}

static int on_baseline(h2o_handler_t *self, h2o_req_t *req)
{
    long sum = parameter(req, "a") + parameter(req, "b");
    if (req->entity.base != NULL) {
        char digits[24] = {0};
        memcpy(digits, req->entity.base, req->entity.len < 23 ? req->entity.len : 23);
        sum += strtol(digits, NULL, 10);
    }
    char body[24];
    return text(req, body, snprintf(body, sizeof(body), "%ld", sum));
}

static int on_pipeline(h2o_handler_t *self, h2o_req_t *req)
{
    return text(req, H2O_STRLIT("ok"));
}

static void route(h2o_hostconf_t *host, const char *path, int (*on_req)(h2o_handler_t *, h2o_req_t *))
{
    h2o_pathconf_t *own = h2o_config_register_path(host, path, 0);
    h2o_handler_t *handler = h2o_create_handler(own, sizeof(*handler));
    handler->on_req = on_req;
}

static void on_accept(h2o_socket_t *listener, const char *error)
{
    h2o_socket_t *peer;
    if (error == NULL)
        while ((peer = h2o_evloop_socket_accept(listener)) != NULL)
            h2o_accept(&accepting, peer);
}

static int listener_on(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1, descriptor = socket(AF_INET, SOCK_STREAM, 0);
    if (descriptor < 0 || setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0 ||
        bind(descriptor, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(descriptor, 4096) != 0) {
        fprintf(stderr, "cannot listen on port %d: %s\n", port, strerror(errno));
        exit(1);
    }
    return descriptor;
}

static SSL_CTX *tls(const char *cert, const char *key)
{
    SSL_CTX *found = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_min_proto_version(found, TLS1_2_VERSION);
    if (SSL_CTX_use_certificate_chain_file(found, cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(found, key, SSL_FILETYPE_PEM) != 1) {
        fprintf(stderr, "cannot use %s and %s\n", cert, key);
        exit(1);
    }
    h2o_ssl_register_alpn_protocols(found, h2o_http2_alpn_protocols);
    return found;
}

int main(int argc, char **argv)
{
    if (argc != 4 && argc != 6) {
        fprintf(stderr, "usage: %s PORT WORKERS FOLDER [CERT KEY]\n", argv[0]);
        return 2;
    }
    for (int worker = 1; worker < atoi(argv[2]); ++worker)
        if (fork() == 0)
            break;
    h2o_config_init(&config);
    h2o_hostconf_t *host = h2o_config_register_host(&config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    route(host, "/baseline11", on_baseline);
    route(host, "/baseline2", on_baseline);
    route(host, "/pipeline", on_pipeline);
    h2o_pathconf_t *files = h2o_config_register_path(host, "/static", 0);
    h2o_file_register(files, argv[3], NULL, NULL, H2O_FILE_FLAG_SEND_COMPRESSED);

    h2o_context_init(&context, h2o_evloop_create(), &config);
    accepting.ctx = &context;
    accepting.hosts = config.hosts;
    if (argc == 6)
        accepting.ssl_ctx = tls(argv[4], argv[5]);
    h2o_socket_t *listener =
        h2o_evloop_socket_create(context.loop, listener_on(atoi(argv[1])), H2O_SOCKET_FLAG_DONT_READ);
    h2o_socket_read_start(listener, on_accept);
    while (h2o_evloop_run(context.loop, INT32_MAX) == 0)
        ;
    return 1;
}
