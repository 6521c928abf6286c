/* names_hip.h - names of HIP and of hipFile. */
#define ENVIRONMENT "HIP_STANDIN"
#define VISIBLE_DEVICES "HIP_VISIBLE_DEVICES"
#define DEVICE_NAME "HIP stand-in (no real GPU)"
#define FIRST_BUS 0xa0
#define UUID_SEED 0xad
#define RUNTIME_LIBRARY "libamdhip64.so.7"

#define fn_core hip_standin_core
#define fn_control hip_standin_control
#define fn_calls hip_standin_calls
#define fn_misuse hip_standin_misuse
#define fn_peek hip_standin_peek

#define fn_init hipInit
#define fn_driver_version hipDriverGetVersion
#define fn_device_count hipGetDeviceCount
#define fn_device_get hipDeviceGet
#define fn_device_name hipDeviceGetName
#define fn_device_uuid hipDeviceGetUuid
#define fn_device_pci hipDeviceGetPCIBusId
#define fn_device_total hipDeviceTotalMem
#define fn_device_attribute hipDeviceGetAttribute
#define fn_device_peer hipDeviceCanAccessPeer
#define fn_primary_retain hipDevicePrimaryCtxRetain
#define fn_primary_release hipDevicePrimaryCtxRelease
#define fn_primary_state hipDevicePrimaryCtxGetState
#define fn_context_set hipCtxSetCurrent
#define fn_context_get hipCtxGetCurrent
#define fn_current_device hipGetDevice
#define fn_synchronize hipDeviceSynchronize

#define fn_alloc hipMalloc
#define fn_free hipFree
#define fn_host_alloc hipHostMalloc
#define fn_host_free hipHostFree
#define fn_host_register hipHostRegister
#define fn_host_unregister hipHostUnregister
#define fn_host_pointer hipHostGetDevicePointer
#define fn_host_flags hipHostGetFlags
#define fn_mem_info hipMemGetInfo
#define fn_address_range hipMemGetAddressRange
#define fn_pointer_attribute hipPointerGetAttribute
#define fn_to_device hipMemcpyHtoD
#define fn_to_host hipMemcpyDtoH
#define fn_in_device hipMemcpyDtoD
#define fn_to_device_async hipMemcpyHtoDAsync
#define fn_to_host_async hipMemcpyDtoHAsync
#define fn_in_device_async hipMemcpyDtoDAsync
#define fn_set8 hipMemsetD8
#define fn_set8_async hipMemsetD8Async

#define fn_stream_create hipStreamCreateWithFlags
#define fn_stream_destroy hipStreamDestroy
#define fn_stream_synchronize hipStreamSynchronize
#define fn_stream_query hipStreamQuery
#define fn_stream_wait_event hipStreamWaitEvent
#define fn_stream_flags hipStreamGetFlags
#define fn_host_function hipLaunchHostFunc
#define fn_event_create hipEventCreateWithFlags
#define fn_event_destroy hipEventDestroy
#define fn_event_record hipEventRecord
#define fn_event_query hipEventQuery
#define fn_event_synchronize hipEventSynchronize
#define fn_event_elapsed hipEventElapsedTime

#define fn_module_load hipModuleLoadData
#define fn_module_unload hipModuleUnload
#define fn_module_function hipModuleGetFunction
#define fn_launch hipModuleLaunchKernel

#define fn_file(name) hipFile##name
#define fn_driver_close hipFileDriverClose

/* Device attributes (hipDeviceAttribute_t). */
#define ATTRIBUTE_PCI_BUS 67
#define ATTRIBUTE_PCI_DEVICE 68
#define ATTRIBUTE_PCI_DOMAIN 69
#define ATTRIBUTE_MAP_HOST 3
#define ATTRIBUTE_UNIFIED 85
#define ATTRIBUTE_HOST_POINTER 4
#define ATTRIBUTE_HOST_REGISTER 90
#define ATTRIBUTE_READ_ONLY_REGISTER (-1) /* a field of the device properties only */
#define ATTRIBUTE_MAJOR 23
#define ATTRIBUTE_MINOR 61
#define ATTRIBUTE_PROCESSORS 63
#define ATTRIBUTE_THREADS 56
#define ATTRIBUTE_WARP 87

/* Pointer attributes (hipPointer_attribute). */
#define POINTER_MEMORY_TYPE 2
#define POINTER_DEVICE_POINTER 3
#define POINTER_HOST_POINTER 4
#define POINTER_ORDINAL 9
