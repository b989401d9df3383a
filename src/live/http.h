/* http.h - libmicrohttpd, opened when a server is wanted: a program that serves nothing does not
   load it. */
#ifndef CO_LIVE_HTTP_H
#define CO_LIVE_HTTP_H

#include <microhttpd.h>

#include <cohort/status.h>

typedef struct co_http {
    struct MHD_Daemon *(*start)(unsigned flags, uint16_t port, MHD_AcceptPolicyCallback accept,
                                void *accept_arg, MHD_AccessHandlerCallback handler,
                                void *handler_arg, ...);
    void (*stop)(struct MHD_Daemon *daemon);
    enum MHD_Result (*run)(struct MHD_Daemon *daemon, int32_t milliseconds);
    const char *(*lookup)(struct MHD_Connection *connection, enum MHD_ValueKind kind,
                          const char *key);
    enum MHD_Result (*queue)(struct MHD_Connection *connection, unsigned status,
                             struct MHD_Response *response);
    void (*suspend)(struct MHD_Connection *connection);
    void (*resume)(struct MHD_Connection *connection);
    struct MHD_Response *(*from_buffer)(size_t size, void *buffer,
                                        enum MHD_ResponseMemoryMode mode);
    struct MHD_Response *(*from_reader)(uint64_t size, size_t block, MHD_ContentReaderCallback read,
                                        void *arg, MHD_ContentReaderFreeCallback free);
    enum MHD_Result (*add_header)(struct MHD_Response *response, const char *header,
                                  const char *content);
    void (*destroy)(struct MHD_Response *response);
    const char *(*version)(void);
} co_http;

/* CO_E_UNSUPPORTED where it is not on this machine. */
co_status co_http_open(co_http *out);

#endif
