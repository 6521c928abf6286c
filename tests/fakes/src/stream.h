/* stream.h - work that runs in order, later. */
#ifndef STANDIN_STREAM_H
#define STANDIN_STREAM_H

#include "device.h"

/* Wait until a device has nothing left to do. */
void stream_finish(int device);
/* The stream behind a handle of the API (NULL: the device's default stream); NULL when there is none. */
struct stream *stream_find(void *handle, int device);
int stream_device(const struct stream *stream);
/* Queue work behind what the stream's order asks for. */
void stream_push(struct stream *stream, standin_work *work, void *argument);
/* Queue work and wait for it. */
void stream_run(struct stream *stream, standin_work *work, void *argument);
void stream_drain(struct stream *stream);
void start_thread(void *(*body)(void *), void *argument);

/* For the file library. */
int stream_core_device(void *handle);
int stream_core_enqueue(void *handle, standin_work *work, void *argument);
int stream_core_wait(void *handle);

#endif
