# Requests as ls-qpack's encoder writes them (pylsqpack 1.0.0), table of 220 bytes, 16 blocked streams.
table 220
encoder 3fbd01
section 0 0000d5d7508f1d665cbe474d7415721e9b8f34d33f518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf5de867fe17fff82c39df73ffc340ffd8a7fffd345213fff3fff23fff208c503a089669d880d3c36fed6fff5b700f3a29ffff2dff3efffd1060209c33f145fff8045bfe3b14fffe3fffd31bffcfffcdfffbf6171e6de9ca4fff3ffae05c99c97fff0678a52fffe89a956f2f02f2b585ed6950958d27a3107fff7ffbfff999192c0614810c5ff1c73a35110c2e8d41234b37f7ff25ffeb851c455db98a77c2e03fe08c37661bc68de97a40e9bffc01a737ffe688e2cdfffa498acffce8ffff43ffe4703420c707ff7a32cacfffc306717ffaf17ffc
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= referer: 3|e\-ah96^i=9;2h{g_dc{9|b^=b2=70_-47_048a5;-}560872h{-|;}21=c26i9__{0c-|7_h^9~ii^{5};16858hec^~616g6f{1h_fe{_4f-
= x-request-id: 21{}{3d3e=i2d11_|66j4_ci2j4=d4-5;|f~6ea_e
= referer: _h9160|2ia7ga8ib8fj=7i^0ihi{4c6-5}cge3|j9~1^b=421b=~j33-9|i1h2}8e^
encoder c08f1d665cbe474d7415721e9b8f34d33fff209cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427
section 4 0381d5d710c111dddf2f02f2b585ed6950958d270a7e3432323633355e5c2d2f02f2b585ed6950958d270d3838345e343d7b333335665c63
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-request-id: ~422635^\-
= x-request-id: 884^4={335f\c
section 8 0300d4d750882f91d35d055c87a75187606c47fe12017f80dddf55b2763fff22e8e83ffa2ffeb52127fff48f7ffe1c8d93ffdffeccf351fffe8a6800dfffb1bb07db3fff9e2b3fffa3fff562801f
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /a/b?c=2
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: 7b^_j70~2~4dch}c8{ad5c}~g84b{_g=05}b7=;3{8e3{b}-e00
encoder c0882f91d35d055c87a7
section 12 0480d1d7105187606c47fe12067f805f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2df2b26c190bae345ffef4744e7fff06628fa749fffd17fc67ffd74dd262c733ab07ffc6a26e078a1fff3fe0266bffc81d8a3fb07f23782d6e0833387b306269687c
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /a/b?c=3
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-trace: i_}j726\3_bjjh}2|3}7ijgebg7-1^4_5=8e1^|0g4^=7_b;0
= x-n: 38{0bih|
section 16 0580d1d7805187606c47fe1206bf8110df5d1a5c676266337d2d6462657d5c637b393566615e3b373b7c6635682df2b26c190be199dfffd297ffbffe4133923524dff091b33c5fff8d07fff06a264bffec7ffe4058e5fffcd74ffecfffebdff0103bf65e9ffe180efffe98bff229c5180455ba4eb3b012668bf72b20885247fff83245ffe4cb38e13a3611fff7fe37fffc3ffcfff355ba37ffbd1f79dffe9262b66ffeffff0ffefffbfffc277bffce91bcfc830cc58ba472802d37383ec32c9ff3fff74ff84fb75a93edd93fe4af89a8e3
encoder dd97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /a/b?c=4
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= referer: \gbf3}-dbe}\c{95fa^;7;|f5h
= x-trace: g7{fe~^=g6d4dg|cb3h_{i=\4_3e}b^=ebf{4j~h}8|0=7;ej^i07{ge|_h2b02e-jh-7=cg4e;f30_2db{1d_^g-66cj51a~|5\^^
= cookie: i}j987~cge5i~\~}\h8^jb89da1ge_jbf0145h0;1fd|{j|c;74d;7d|f924bb
encoder 02
section 20 0680d5d781518860d5485f2bce9a6810dddf2df2b26c190b870fdc5f728658892f02f2b585ed6950958d27e45bffdfffcdf429a493fff84f215b33aec806a795e76370c19ba09d98bffe4ff7ffebae4ffffc241c91b7ff3fe40f4d07dce4ffeca5fffc61b227dc93a3dfffc24244f4d3ceffff7fe3907ffe8ffff4e47c124733fffd825fffdd004ff9ffd69efff251ff5d643362637c68653b365f66657c317e6567675e685f303d63617c5c356235367e305e637e392d63677d2d627d317c33632d3d3138667c355f7e3b3565697b3d5e6a5c623b347b7c7c5f386633327b2d7c7d366a3b38372d2d64637c7c7c697e7b7d68686738
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-trace: 1;_;f1f_c
= x-request-id: -}{5jeidd\hde5i77d04hf87b6i1gj27ge^h;}76h\dadb5||=8g=;hc~fe{ia3296dj8\dc_8ghh9~|6={b{hc90dbg9~=f{j0c|~48^fa
= referer: 3bc|he;6_fe|1~egg^h_0=ca|\5b56~0^c~9-cg}-b}1|3c-=18f|5_~;5ei{=^j\b;4{||_8f32{-|}6j;87--dc|||i~{}hhg8
encoder 65f2b26c190b00
section 24 0780d1d7508f1d665cbe474d7415721e9b8f34d33f5187606c47fe12073f80dddf5de45a2ffe83fff08449d68bfff7fc044fffff0fffccffce83e8dbe393fff87fc6d965fe8d140ecc408bffd69f8fa0086960fffe0d3313bff279268968c5fffbfff84a2300a19670ffff0fffcfffff0fffe02e8d83fff839ff1f9bffdfffd289c18fffd9649f2f12f2b5555555555555555555555555555555555555555555557fe088df618a477efffdffeb9108bffe7ff7fff81a2648e3e068dd03d22816884e7fc8a3fff166db0c038ffff87ffefffe1148e89ae9ffd73fff817edffb6a303651fff9fffc0c599efff1e72314bf6f2c65bffb3f4ffeba365d65627fc8961370070029667b38357b627c37315c6567367c5c62666a3b36665f6a5e62386a327e313d66696a5c356739305e34
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=6
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= referer: -_~0{22ch-_{|0_9\{3|jaj59ad\|5339j4e07gc12}49bj0cif=\43_7|hdg_-b2{\f2i0e1fh1\{9\\2j50\6|9g}{f26aa}fdh
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: _i;1_d7;}~6_2e^~\i_3c6904ij1j_=-_26|_b^-551=ab\{\_d724j~6\e;9;4b05ea^\ieg8^86b2f;8-i-~hj~7a373-c|_-25=1
= x-trace: f{85{b|71\eg6|\bfj;6f_j^b8j2~1=fij\5g90^4
encoder c08f1d665cbe474d7415721e9b8f34d33fc18860d5485f2bce9a68
section 28 0981d5d710115f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df5d2264675e5e3934367b332d667e5c306265697e37355f377d5f337e636932313d5e32362df2b26c190b6c2d6469347e6162377b3d386a31393169685c635c37647e395f7b337b7c3d645e6a662d663b2d3b3d647e32327b7c3b7b303232357c30317d663d7d65373b36335f5e5c6a6567305f635e336336617d385f6838333267383b697c7d5f7c7d7b6565685f7d7e6836645c6a5c62
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= referer: dg^^946{3-f~\0bei~75_7}_3~ci21=^26
= x-trace: -di4~ab7{=8j191ih\c\7d~9_{3{|=d^jf-f;-;=d~22{|;{0225|01}f=}e7;63_^\jeg0_c^3c6a}8_h832g8;i|}_|}{eeh_}~h6d\j\b
encoder 0165f2b26c190b00
section 32 0b81d5d710805f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf01d227ff5f7ffff3867e6fffe13f490313dfffc3fe102381c249fff8130da5bffa568ce46d3cebfff238ddfffcd48dcfd16fff00071e9e677fe7ffe9ba7ffeff8f3b00e7ffeca3ff8e199091637d91e904271e672f02f2b585ed6950958d27df0ba088c459b78acb517fff081f6a603f348297a7ff6627dffff0706d7ff66ff907dcdffd34cefff60fffdd3effe0fffcfbfb7fec640ccc8ffff7ffab7dfdace99d0ad2bcb003d248fee5802cffff01ffc81affec8093ffd287ffbfffc1b6c92df2b26c190b6530355c7b657d6436386936326731695f615e673d697b36337e3b3b32667c5c7b3365656164673b38373261617b7b7c63347e62675c38375e637d303039375c34357e2d5c676168675c31325c6464385c6567343438385e2d5f3d5e347e63383b3b627d3566
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-trace: c~99{6i9g\hjd1_8\|c1a=6cd{0ga4-~e4i6b4879|bb7{4d5hj-^0068hg7|{gj{|87=ah~fa|6i31c-i;c8d22683
= x-request-id: 170_ic-58e34_\=94g09gd2fj~gc;\6a4~g|=;g~ig7~={j;|a^;;9;ac1g3a{}-;;-7i71-f8-01jdb;f=13\a|=4~d0d}e1~\55c
= x-trace: 05\{e}d68i62g1i_a^g=i{63~;;2f|\{3eeadg;872aa{{|c4~bg\87^c}0097\45~-\gahg\12\dd8\eg4488^-_=^4~c8;;b}5f
encoder ff209cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dd97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68
section 36 0181d5d750882f91d35d055c87a75187606c47fe1207ff1011df550f5e353932633d687c5c686132387c3b55cefbfb5a39e4fff26ff838da8c53fff93fff628fffc7567bffc64d195a1b7ffd93ffbfffc209252ffc7257dc048e7fcfffe02fff3fff80c9ffe8dd5bfff11c75f7dfff9ff1d2411c4ebfd1a144377f5503667b36
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /a/b?c=9
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= cookie: ^592c=h|\ha28|;
= cookie: ;;-bhd^g|ab4b2h^h~_b^7-8^3ibe4a5~d~\=dfe|6f960d6|\2^\ac}a7-{c67999||7c=b_79j42_a7
= cookie: f{6
encoder c0882f91d35d055c87a702
section 40 0381d4d710c111dddf2f01f2b55555555555570b3736315f64633b687d5c7d2f02f2b585ed6950958d27ac374e9ffde856df781ffd986424724507ff5f99c134cfff8fbcb4dffe7ff7efffbff09ffe0ffff4707d8e288b5d665c6266396a34693d65697c6a7d31613032646634662d2d5e357e397b7e7e7e30697c68613337613068375c315e7b30617e7e7e685c307c63376664627b7d30332d303163376434666736622d5f37685e335e5e363d7e2d632d67676a7e5e5c613d69333d6466
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-nnnnnnnn: 761_dc;h}\}
= x-request-id: ijj~je5980~gaccbd_=~9g6243^98-g^~;~|c^a{b=;a__e
= referer: \bf9j4i=ei|j}1a02df4f--^5~9{~~~0i|ha37a0h7\1^{0a~~~h\0|c7fdb{}03-01c7d4fg6b-_7h^3^^6=~-c-ggj~^\a=i3=df
encoder 02
section 44 0480d5d7815187606c47fe1200878010df2df2b26c190b981920fff6658cfacb7dbc5588f920174213ec8e8c81215d935dd0720fffe06fff3ffad4bfffc243741330412b5f7fffc24fff7ffc6800fffd30c5fffbfe4f27ffb37fc0c4033e3fff6627fff024bff2289ee911a58cadc9fffa3119623cf4f193a0cdffefff85fff021775511317c3b69313166365f647d685e7c666a7e
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /a/b?c=11
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-trace: ac=}g-i9--;8e-c9c=2jcc;c7ac1ce7d
= referer: 6=\i^~4f\dij23==f4;\d}^400{ga2{|hd}g|1_0i9a}gc\cf|__8j_ifbe5d{b2i-c88hbcjai}^e^117
= cookie: 1|;i11f6_d}h^|fj~
section 48 0580d1d7105187606c47fe12008b5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf5de00ceb7fff06cdffe8e392217ffe0cfd06db4dc9234ec0d905236dfff92fff93b2d4724c4305a6e7fff00ec647276fee679ffff7ffcfff45246cb91cee4ae7ffa09a423666bffc6bfe7d949ff1a58124c68bfe049240db6695c1acb7fc73fff87f
encoder 02
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /a/b?c=12
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= referer: 1h-\5i}abd_2{1hja545dd47=5c2d55^f^h34bdgci145h^07bc6h5;g89}^}2db36bh6f6}0gdc5i4^4|;ec|4-0dgi_|1cd=55if6a--|6\
section 52 0680d4d7805187606c47fe1200b310dddf2f1bf2b55555555555555555555555555555555555555555555555555555555555555555112d3165327c5c303b627d7d315f5c2d663d2f02f2b585ed6950958d27c56bfff87d91a9bffd8fa345fffd374fb03d310438a5185b9c8d85cfff7edb8a67ffff84d37ffe6e6e9ff1a34fffd046cca0662806f07ffb2cffffbfff0cafffc33ed36ebb0755a09dd90cc97ffc2b85781fffc3ffb1cb3b3291efffcd7fc64dfffc1e8a7fff4bf7
encoder 02
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /a/b?c=13
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: -1e2|\0;b}}1_\-f=
= x-request-id: 4\;c4g}bj4e{gj;08gc2a_fa15hc516};5_g9\gg{5gj|4ih~0b3f03_=a81~fh{{ae9|i94577=
= cookie: h7di3e^e6e80\~bfh3fc8{4|3i\8_h}e;
encoder 69f2b585ed6950958d270065f2b26c190b00
section 56 0881d5d7508f1d665cbe474d7415721e9b8f34d33fc180dddf00025c6a2df2b26c190bd697ffd2b24705ffef4ff912d038f48d4edc4e3d17fc0ffff071d99923dfffc0cf0a5fff6032d3b2170d17ffe241f71bf1373440ff9ffe0da6c117ff605bfff84ad03fe4ec926759117fff87dce1fb802289bffe84b3ad018c8dc2ffff013ecac46de680f7
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-request-id: \j
= x-trace: f}e3c62}j|_-=68d4h5_68_|1\67g3c8\i82f}=i-h316i_{c=;b9_5g_0|^a450_~=-\f40|h3cg732e\;h1;=12_5~1eh-
= x-trace: b6e\293-c58408
encoder c08f1d665cbe474d7415721e9b8f34d33fff209cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427
section 60 0a81d4d710518860d5485f2bce9a6811dddf2f02f2b585ed6950958d27d28bffb288322dffde9fff9d5a65a781effecc1ffefffbd1634bfff88fb5ffec5fffc3ffaf4737fff01beeb3f6e9864ff83fffd29209c72cf29bfff841ff2718e427ff8498ad808e041d19fb6fffd3023fff3f2df2b26c190b913108fc7018bff3ffdfb001c6cb33fffe3b2f02f2b585ed6950958d27d82fffe8191748073f4ff84ff8dc8478b37fc81aff8d7fcfffd3be4fffd136f3251cdffe3d349fff966a7ffe99c65c741f718e7fb1cee7499682069f9bfff84b3748bfff818b2c73b5ffd07ffe8208a0ff9ff3a080e7df48ff
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-request-id: _~f21d-~j{7-g-h=8~g1~}j-if{c94}_\~8bg\a973;7iac|a{fc=hafhfi\=|haadc^cge50c610j3;5}i0b^
= x-trace: icc9b=ie|};0065eg9^7
= x-request-id: e{=32j=ahj|c|5dc8eg|=4|4|{h9c{_583eag^8gd{-4h~i63670;bah;ah6jg-==49g\fgj_\iefbh4~0{==_=||j206;jb
encoder c18860d5485f2bce9a6865f2b26c190b00
section 64 0c81d4d750882f91d35d055c87a71080dddf5513665e2d5c6834616730647c363d367d315f3d3501dc249111f132d90dff22727681ffeb7033ffd802eb5ffdfff3efffc03f1c9ffd688b7ff862c7ffefff8e948d44fc7d2227ffbffd8bffa065c214504907dc71f4fff3ffb115c9202025fffcebffff99967945ffdff8cc000c9fffc276bf
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: f^-\h4ag0d|6=6}1_=5
= x-trace: cd_c9235ci|_6h40}5=3~=174~^;^09bd~4c-^ieb}^7ec4_9bj_c}~_~036ce2=d=;bbj^~_e6d=c0f{79{3fhf2~|3=01d\h4
encoder c0882f91d35d055c87a703
section 68 0281d1d71081115f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df55ccff9d3ffad0a09beffe17ee6fff1b93ffdfffce03fe4e3338dfffe80bffebe004bf7f7ffe8229a2663fffc3fff677823ff9ffd33f1ffff08c13fffa0fffdfffc0c1e817c221749271fff9133f2f20f2b55555555555555555555555555555555555555555555555555555555555555555555555555f605e687b5e2d7c625c3b667e657b6a69362d3032337b6a6568373d305f7b62315c7d667d305c7e657d3b7d5f372d5e627c7d7b373430357c347c3b7d7b673b303168636464305c615c7c616831633963353b62677d342d326a7c35326a2d2d5c5c5d285c313b7b6a3b7d31385e6439387b5c3663353433615c5f6867673137315e5f3d7d642d5e38623438
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= cookie: |j~42=g;|e;g^5d}{60|hai65{=e}900f;;}0_g_3b{a}h81a|~i9b\b0h}0{\i1j19122jdha^_3
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: ^h{^-|b\;f~e{ji6-023{jeh7=0_{b1\}f}0\~e};}_7-^b|}{7405|4|;}{g;01hcdd0\a\|ah1c9c5;bg}4-2j|52j--\\
= referer: \1;{j;}18^d98{\6c543a\_hgg171^_=}d-^8b48
encoder 03
section 72 0380d1d7811080dddf2df2b26c190be873fe7d8649ffe7dbfff239c3fffc3ed9944b404fff19981d00e7dcadbbffd70717ffa57c5fff9dfffe1ff25947ffe2ceffff0ffec9ffebc18fffc8e6707fffc1cfff7fff841fffc2099c6bffc2bb314ab35ff06c95f80cf9a76667166a327ff47ff01fffc2097eff
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-trace: 6|;1dh|;9|bh1\;3f2-=c^3g0j06;f57~6a_}e92{7\|ffa^-7\~d}81b^bg6a\6}\=\=g64^e7gee-4|a3e9=i9ih3g6-4bc~a|0\=f;
section 76 0201d5d7508f1d665cbe474d7415721e9b8f34d33fc181dddf55e7fff667befee4fb6a07e098dfffbfff33ffe391b636bffd27ffa4fffe1ff1d899281a95699d033ffdfb9e69e5fff590becf4e92ad33442ccf02473a4acb7fff9affebcdb666dc99b79c2b92ce40c0220a40fdb200c107ffe12c56bffdfffcf3a38fffdff9f6d87f
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: }g8;;d;4=9=gi{{3^6b5a4}c}c\|7_3e04f-g703~;hghf}3193jjf-g4ceg80d6jf35{4~855i56g586e6fhc1=2c2d1;301=={2-e4}{87ab}|;51
section 80 0581d5d71080115f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2f02f2b585ed6950958d27d02ac18bffd17fc03cf45383fe4aeba25a5e9217fff87fff0ff837c1ff1b69b305cfffe030baeffcfff00b37200c27df7bfe7ffa6187fe0881ff9ffe2ce8cdfffc01d3fff372c0219269a3fbff852f49ff
encoder c08f1d665cbe474d7415721e9b8f34d33f02
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-request-id: e-1_}2|088_h0|f772-fjde\\|a90|545i16\a177|^0-5d0i2998|}ia1|2c1|^-7ai\0j{5f=2acggb;|eejh
section 84 0500d4d781c180dddf2f16f2b5555555555555555555555555555555555555555555555555555557ed27ff7ffc2b3fffa68fedbfff7ec4c916fff60ffecaf97a4648e592318208169646a592599f0c53064fff5900993353b638a0fffe12cb2ffff02ffc0adf6b46d38fc5fffc23ff8d3bff3fff83c369afffe037d6044270bffec7ffe7fc75c2b72c02960586e7fcfff3fe40e0fffd
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: c~^e3{gb;5};23c-}=~f9ejbcbfdba0==-fd4fdfg91_g1d}3023i4h5a_=\fff\e|1-;-b469_\b|47|\8a44\a9-0_26e}b^|76e5f=2f=-a6|^|=6a}
encoder dd97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68
section 88 0680d4d750882f91d35d055c87a75187606c47fe12010b8010df5d4a5e3966305c3267695c677c5f7c397b61383d30302d7e37697c393066387d3735697d5e63355e7b7e6265337e6338335e6a3836333d5e6163387e656432695c64397d33345c3b7c69633b2df2b26c190b8b8dbfffdf7d2622c637fc0f2f06f2b5555555555555555555557f4036337e383d7c2d7e69342d7d30325f3d3564623b7b657c5f6a62397d373b3b65312d7d327d68697b366234356163637d7c5c5c62673439355c3d633b6a307b5e
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /a/b?c=22
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= referer: ^9f0\2gi\g|_|9{a8=00-~7i|90f8}75i}^c5^{~be3~c83^j863=^ac8~ed2i\d9}34\;|ic;
= x-trace: b5{;jgc-ii|1
= x-nnnnnnnnnnnnnn: 63~8=|-~i4-}02_=5db;{e|_jb9}7;;e1-}2}hi{6b45acc}|\\bg495\=c;j0{^
encoder c0882f91d35d055c87a702
section 92 0881d1d7105187606c47fe12013311dddf55145e5e68357d7c6869695e6268665e396a7e632d322f15f2b55555555555555555555555555555555555555555555555555555e06a6919fff1bff808a3fb14eb34dfffe726fff0d2b9148e805fffc25fff0bfffc1b6dbfff0cf06475bffebc0941fffc2408a42b6f74009e76507ff46099a93a34b05effec5005bfff1699dfff628a50ccfcdd3a413c0f1191cce92671c8a4ffef
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /a/b?c=23
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: ^^h5}|hii^bhf^9j~c-2
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: 4gd3^5|0_b;2h-45{6g^if6_d702\f^e\555^i81d75~80f0\d12de58j0287f0~a0g4dj4-18~_=15^-g7}__f1g9gjj=h=8c3ag7cg66_d~
encoder 02
section 96 0980d5d7815187606c47fe1201358010df
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /a/b?c=24
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
encoder 02
section 100 0a80d5d710518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2df2b26c190b285c383d613633315c3d38377b66613867665c7b6864675e6469385c3b36305f32323d6163397b3d332df2b26c190bbc2b21fff6218e365f75614a1fb0ba50fff9fffc02674b2ca52c8f7fcff924bd1c79e91d6d969dffe8fee39d92cfffe7ff473ffff0fffc19fffa4fffdf2f12f2b55555555555555555555555555555555555555555555555af640dfff639e2fffd1b4e4fffe46ffff92cc4313ffa0ffe900b119ffef4239ffdfff1a9e22cbd1907ff9ffe49038cff
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-trace: \8=a631\=87{fa8gf\{hdg^di8\;60_22=ac9{=3
= x-trace: e31}_aab397-2f1;17e1^\1i7effeed8||dfj688d75347~a;bh3eh^~ah\{1h~c{
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: 305~bh_{b46h^b9^fgcic~0~c0-c3~jc6~^4h_efj30^^d=63
encoder c18860d5485f2bce9a68ff209cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427
section 104 0c81d5d7801011dddf2f02f2b585ed6950958d279d723047239f7f704ce0a59e2999344d127fffe0d0e09e21493324762e9f
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-request-id: 6b0bd6;;=g62fh_g3i_4ch\4a=h_2dg3c7_j
section 108 0180d4d710518860d5485f2bce9a68805f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df5db083ffd6485212376637ff8b4827226cd34917ff8dbdff1ae84fff1efffdfffc1b2948db258a21c12bdf71ffc83fe7fc27
encoder 02
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= referer: =}3ceccb7gi^-d26_5igd_^58|4jc^8{\5eec53e__a=f8;b|=||c
section 112 0100d4d780c181dddf55d1fffc1660fffc695a6a51948efdb3ffeceb7ff858bffd341249ff0448a71963fff424fff7a3c0fff7ffcfbff8efffbffe3cd2dff3fff3cecdd1c99bfb0142171d7a77cd1385706cb313f2c6ef4349ffd5bf5ddc0b8dcf07ff9ffeb8e89de9d05fffa08ffff19b07dc537db5ffe860e8d049ffd0fdad37ffe9ffe32b7dc4658300ccec600b31b2fb9fffc22fff7a7fcff93800dc9f7ff3efee56e40cc6fffe0dc7017fff803ffd67ffd6ba325015697f
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: {13={if44faec7;3}h-^e_}i=dd|2c_haeb}1c}j80}^;|7}^84-|{87gj6g5;0e11678h9i_6e6a33_9fb7jid~-
= referer: 165h=^}6727jj2{=b{i50;_g;4}1=j41c~1;-g{h|3-;_i-1=ai7b013b396\_}j||h005d;|;;f5d1gi\5b=e\0}3}4j3e0e-f
section 116 0c01d4d7508f1d665cbe474d7415721e9b8f34d33fc181dddf55e48d96662fff7fe05c924fffe0669c13e6188528bfe0fec327ff4002c51bf04d30de89e7e7e924d07ffbffefff93cedbdffd7bfff80248de038b7ffaf91c6a49e66ba33ffe047fffc2790029d6fff599c0f4e25a373fe3bff3a19bffec0db438e21353beff2f04f2b5555555555555555557e26dd14bff2437ff7ffbf6d7fff02746bffd9a01909fffc092846cb2e35d3ffc802e06096471c6e40f4fff5d9a7fffe020fffa07df75e374ffe91f803fffa40c4eac02822fff6404ac8ffff806710e58a689d682234f2ffc81a97fff7ff81fffdf71ff
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: b33ge~|16dd\i4629ia22f2|a;1d~00e_b9=gga8_89hjdg=}}^hh58~8\0db806-}9c64dhg4j3^1a\hd02h-}3h08h2-b6|7|ji5~=54ab_24h99
= x-nnnnnnnnnnnn: 572f|di~~;4\cj4}g=acc\cf1a3364j^=161=fd665d1j}7gh\21}09978ij~c9=1{d1_7-0e0_}d0f3a\1h2af_g_7412ihf|=4f{^1{;b
