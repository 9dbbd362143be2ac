-- Sends so many requests in one piece: wrk ... -s pipeline.lua URL -- DEPTH
init = function(args)
   local requests = {}
   for i = 1, tonumber(args[1]) do
      requests[i] = wrk.format()
   end
   pipelined = table.concat(requests)
end

request = function()
   return pipelined
end
