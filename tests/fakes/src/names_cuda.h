/* names_cuda.h - names of the CUDA driver API and of cuFile. */
#define ENVIRONMENT "CUDA_STANDIN"
#define VISIBLE_DEVICES "CUDA_VISIBLE_DEVICES"
#define DEVICE_NAME "CUDA stand-in (no real GPU)"
#define FIRST_BUS 0xc0
#define UUID_SEED 0xcd
#define RUNTIME_LIBRARY "libcuda.so.1"

#define fn_core cuda_standin_core
#define fn_control cuda_standin_control
#define fn_calls cuda_standin_calls
#define fn_misuse cuda_standin_misuse
#define fn_peek cuda_standin_peek

#define fn_init cuInit
#define fn_driver_version cuDriverGetVersion
#define fn_device_count cuDeviceGetCount
#define fn_device_get cuDeviceGet
#define fn_device_name cuDeviceGetName
#define fn_device_uuid cuDeviceGetUuid_v2
#define fn_device_pci cuDeviceGetPCIBusId
#define fn_device_total cuDeviceTotalMem_v2
#define fn_device_attribute cuDeviceGetAttribute
#define fn_device_peer cuDeviceCanAccessPeer
#define fn_primary_retain cuDevicePrimaryCtxRetain
#define fn_primary_release cuDevicePrimaryCtxRelease_v2
#define fn_primary_state cuDevicePrimaryCtxGetState
#define fn_context_set cuCtxSetCurrent
#define fn_context_get cuCtxGetCurrent
#define fn_current_device cuCtxGetDevice
#define fn_synchronize cuCtxSynchronize

#define fn_alloc cuMemAlloc_v2
#define fn_free cuMemFree_v2
#define fn_host_alloc cuMemHostAlloc
#define fn_host_free cuMemFreeHost
#define fn_host_register cuMemHostRegister_v2
#define fn_host_unregister cuMemHostUnregister
#define fn_host_pointer cuMemHostGetDevicePointer_v2
#define fn_host_flags cuMemHostGetFlags
#define fn_mem_info cuMemGetInfo_v2
#define fn_address_range cuMemGetAddressRange_v2
#define fn_pointer_attribute cuPointerGetAttribute
#define fn_to_device cuMemcpyHtoD_v2
#define fn_to_host cuMemcpyDtoH_v2
#define fn_in_device cuMemcpyDtoD_v2
#define fn_to_device_async cuMemcpyHtoDAsync_v2
#define fn_to_host_async cuMemcpyDtoHAsync_v2
#define fn_in_device_async cuMemcpyDtoDAsync_v2
#define fn_set8 cuMemsetD8_v2
#define fn_set8_async cuMemsetD8Async

#define fn_stream_create cuStreamCreate
#define fn_stream_destroy cuStreamDestroy_v2
#define fn_stream_synchronize cuStreamSynchronize
#define fn_stream_query cuStreamQuery
#define fn_stream_wait_event cuStreamWaitEvent
#define fn_stream_flags cuStreamGetFlags
#define fn_host_function cuLaunchHostFunc
#define fn_event_create cuEventCreate
#define fn_event_destroy cuEventDestroy_v2
#define fn_event_record cuEventRecord
#define fn_event_query cuEventQuery
#define fn_event_synchronize cuEventSynchronize
#define fn_event_elapsed cuEventElapsedTime

#define fn_module_load cuModuleLoadData
#define fn_module_unload cuModuleUnload
#define fn_module_function cuModuleGetFunction
#define fn_launch cuLaunchKernel

#define fn_file(name) cuFile##name
#define fn_driver_close cuFileDriverClose_v2

/* Device attributes (CUdevice_attribute). */
#define ATTRIBUTE_PCI_BUS 33
#define ATTRIBUTE_PCI_DEVICE 34
#define ATTRIBUTE_PCI_DOMAIN 50
#define ATTRIBUTE_MAP_HOST 19
#define ATTRIBUTE_UNIFIED 41
#define ATTRIBUTE_HOST_POINTER 91
#define ATTRIBUTE_HOST_REGISTER 99
#define ATTRIBUTE_READ_ONLY_REGISTER 113
#define ATTRIBUTE_MAJOR 75
#define ATTRIBUTE_MINOR 76
#define ATTRIBUTE_PROCESSORS 16
#define ATTRIBUTE_THREADS 1
#define ATTRIBUTE_WARP 10

/* Pointer attributes (CUpointer_attribute). */
#define POINTER_MEMORY_TYPE 2
#define POINTER_DEVICE_POINTER 3
#define POINTER_HOST_POINTER 4
#define POINTER_ORDINAL 9
