/* What handlers that call other servers respond with when a call has failed. */
#include <citius.h>

/* Responds with the code, the reason and the text of the last failure, instead of what was printed before. */
static int fail(citius_response *response, int code) {
    const char *text = NULL;
    int reason = citius_net_error(&text);
    response->status = 200;
    response->size = 0;
    citius_print_integer(response, code);
    citius_print(response, " ");
    citius_print_integer(response, reason);
    citius_print(response, " ");
    return citius_print(response, text);
}
